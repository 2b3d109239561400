// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/kube/egressservices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// suffixIPv6 is the end of the names of containerboot's services that lead to an IPv6 address.
const suffixIPv6 = "-ipv6"

// Messages of ports whose target has no address of a family in which the kernel forwards.
const (
	messageEgressFamily = "%s has no address that this pod can forward to: the kernel translates within one address family, and this pod forwards %s; use networking Userspace, or pods with the family of the target"
	messageEgressHalf   = "Clients that connect to the Service by %s do not reach %s, which has no such address that this pod can forward to"
)

// kernelHosts returns the target's host at one address of each family in which the kernel
// forwards, the pod's first family first: the kernel translates only within a family
// (tailscale/tailscale#18594).
func kernelHosts(t egress.Target, input EgressInput) []localapi.Host {
	var out []localapi.Host
	for _, ipv6 := range []bool{input.IPv6First, !input.IPv6First} {
		if ipv6 && !input.Families.IPv6 || !ipv6 && !input.Families.IPv4 {
			continue
		}
		for _, name := range append([]string{t.Host}, t.Alternatives...) {
			if h := input.FindFamily(name, ipv6); h.Addr.IsValid() {
				out = append(out, h)
				break
			}
		}
	}
	return out
}

// forwardTo sets the addresses to which the kernel forwards a port. It returns the target's host
// at the first of them, and the reason if there is none.
func (p *EgressPort) forwardTo(input EgressInput, found localapi.Host) (host localapi.Host, tags, family string) {
	hosts := kernelHosts(p.Target, input)
	reached := len(hosts) > 0 && (!p.Target.SingleStack || hosts[0].Addr.Is6() == input.IPv6First)
	if !reached {
		if found.Addr.IsValid() {
			family = fmt.Sprintf(messageEgressFamily, p.Target.Host, input.Families)
		}
		return localapi.Host{RouteUnused: found.RouteUnused}, "", family
	}
	for _, h := range hosts {
		if m := missingTags(h.Devices, p.Target); m != "" {
			p.Addrs = nil
			return hosts[0], m, ""
		}
		p.Addrs = append(p.Addrs, netip.AddrPortFrom(h.Addr, uint16(p.Target.Port)))
	}
	return hosts[0], "", ""
}

// applied reports whether containerboot has set up all addresses of a port, and no others.
func (p *EgressPort) applied(input EgressInput) bool {
	return sameAddrs(input.Applied[EgressKeyOf(p.Target)], p.Addrs)
}

// sameAddrs compares lists of one address of each family, in any order.
func sameAddrs(a, b []netip.AddrPort) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x netip.AddrPort) bool { return !slices.Contains(b, x) })
}

// half returns the problem of a port that the pod forwards in fewer families than its Service may
// have.
func (p *EgressPort) half(input EgressInput) string {
	var forwarded address.Families
	for _, a := range p.Addrs {
		forwarded.IPv4, forwarded.IPv6 = forwarded.IPv4 || a.Addr().Is4(), forwarded.IPv6 || a.Addr().Is6()
	}
	lacking := address.Families{IPv4: input.Families.IPv4 && !forwarded.IPv4, IPv6: input.Families.IPv6 && !forwarded.IPv6}
	if lacking == (address.Families{}) || p.Target.SingleStack {
		return ""
	}
	return fmt.Sprintf(messageEgressHalf, lacking, p.Target.Address())
}

// EgressServices returns containerboot's config for the egress ports that have an address. It
// has one service for each port and address, so that the order of a service's ports does not
// matter (tailscale.com kube/egressservices, PortMaps). Containerboot has separate rules for each
// family (tailscale.com util/linuxfw, EnsurePortMapRuleForSvc).
func EgressServices(ports []EgressPort) ([]byte, error) {
	out := make(egressservices.Configs, len(ports))
	for _, p := range ports {
		protocol := strings.ToLower(string(p.Target.Protocol))
		for _, a := range p.Addrs {
			name := fmt.Sprintf("%s-%d", protocol, p.Target.ProxyPort)
			if a.Addr().Is6() {
				name += suffixIPv6
			}
			out[name] = egressservices.Config{
				TailnetTarget: egressservices.TailnetTarget{IP: a.Addr().String()},
				Ports: egressservices.PortMaps{{
					Protocol:   protocol,
					MatchPort:  uint16(p.Target.ProxyPort),
					TargetPort: a.Port(),
				}: {}},
			}
		}
	}
	// Map keys are encoded in sorted order.
	b, err := json.Marshal(out)
	return b, errors.Wrap(err, "cannot encode egress services")
}

// EgressApplied returns the targets of ports in the pod with the given address, according to
// containerboot's status in the state Secret.
func EgressApplied(status []byte, podIP string) (map[EgressKey][]netip.AddrPort, error) {
	if len(status) == 0 {
		return nil, nil
	}
	var st egressservices.Status
	if err := json.Unmarshal(status, &st); err != nil {
		return nil, errors.Wrap(err, "cannot decode egress status")
	}
	if st.PodIPv4 != podIP && st.PodIPv6 != podIP {
		return nil, nil
	}
	out := make(map[EgressKey][]netip.AddrPort)
	for _, s := range st.Services {
		if s == nil {
			continue
		}
		for p := range s.Ports {
			key := EgressKey{Port: int32(p.MatchPort), Protocol: corev1.Protocol(strings.ToUpper(p.Protocol))}
			for _, a := range s.TailnetTargetIPs {
				out[key] = append(out[key], netip.AddrPortFrom(a, p.TargetPort))
			}
		}
	}
	for _, targets := range out {
		slices.SortFunc(targets, netip.AddrPort.Compare)
	}
	return out, nil
}
