// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// Messages of an egress port. They say why it has no target, and what to do.
const (
	messageEgressRange     = "The port is not one that targets may have"
	messageEgressUDP       = "UDP needs proxies with Kernel networking"
	messageEgressProbing   = "Waiting for the first probes of the target"
	messageEgressLeaving   = "No longer wanted; open until its connections have ended"
	messageEgressApplying  = "Waiting for containerboot to set up forwarding"
	messageEgressOutside   = "tailscaled would have dialled %s outside of the tailnet, which was refused"
	messageEgressSilent    = "%s does not answer, so its connections are refused; check that it runs, and that the policy file grants the proxy's tags access to its port"
	messageEgressNoHost    = "No device of the tailnet that this proxy may reach has %s; check the host, and that the policy file grants the proxy's tags access to it"
	messageEgressNotSeen   = "The policy file does not let this proxy see %s; add a grant with src [%s], dst [%s] and ip [%s]"
	messageEgressNoName    = "No device that this proxy may reach has %s, and the policy file does not let the proxy see %s; check the name, or add a grant with src [%s], dst [%s] and ip [%s]"
	messageEgressHostless  = "No host has the addresses of %s, which this proxy may see; check that a host of it is online and approved"
	messageEgressRoutes    = "Only a subnet router has %s, and this proxy does not accept routes"
	messageEgressTags      = "Device %s has %s but does not carry %s, which the target asks for"
	messageEgressOffline   = "Device %s, which has %s, is offline"
	messageEgressUnhealthy = "%s does not answer: %s"
	messageEgressName      = "%s is led to, but %s is not its name in the tailnet; correct one of the two"
)

// An EgressKey identifies a port of the pod.
type EgressKey struct {
	Port     int32
	Protocol corev1.Protocol
}

// EgressKeyOf returns the port of a target.
func EgressKeyOf(t egress.Target) EgressKey {
	return EgressKey{Port: t.ProxyPort, Protocol: t.Protocol}
}

// An EgressPort is a port of the pod and its target.
type EgressPort struct {
	Target egress.Target

	// Addr is the target's address in the tailnet. Connections are refused if it is the zero value.
	Addr netip.AddrPort

	// Addrs are the addresses to which the kernel forwards, one of each family. The first one is
	// Addr. Empty without Kernel networking.
	Addrs []netip.AddrPort

	// Listen reports whether the pod listens on the port. A target without an Addr is also listened
	// for, to refuse its connections.
	Listen bool

	// Probe describes how to probe the target. Nil means no probe.
	Probe *probe.Target

	// Leaving reports that the target is no longer wanted.
	Leaving bool

	// Ready reports whether the port leads to a target that is available.
	Ready bool

	// Message says why the port is not ready, or which problem a ready port has.
	Message string
}

// An EgressInput is the input for planning egress.
type EgressInput struct {
	// Targets are the wanted targets.
	Targets []egress.Target

	// Leaving are targets that are no longer wanted, and whose ports are still open.
	Leaving []egress.Target

	// Running reports whether tailscaled is in the tailnet.
	Running bool

	// Find returns the device of the tailnet that has a host.
	Find func(host string) localapi.Host

	// Visible are the addresses of the services that the policy lets this node see, by their name. It
	// is nil if that is unknown.
	Visible map[string][]netip.Addr

	// Suffix is the domain of the tailnet.
	Suffix string

	// Tags are the tags of this node.
	Tags []string

	// FindFamily is Find for an address of a family.
	FindFamily func(host string, ipv6 bool) localapi.Host

	// Resolves reports whether a DNS name of the tailnet has an address.
	Resolves func(name string, addr netip.Addr) bool

	// Health is the health of probed targets.
	Health map[probe.Target]probe.Status

	// Kernel reports that the kernel forwards packets, in Families. Applied is then the part that
	// containerboot has set up. IPv6First reports that the pod's first address is IPv6, and so
	// those of Services with one family.
	Kernel    bool
	Families  address.Families
	IPv6First bool
	Applied   map[EgressKey][]netip.AddrPort

	// Outside are ports whose target tailscaled would have dialled outside of the tailnet.
	Outside map[EgressKey]bool

	// Unanswered are ports that refuse connections, because their target does not answer.
	Unanswered map[EgressKey]bool

	// Closed holds, by port, why the pod cannot listen on it.
	Closed map[EgressKey]string
}

// Egress returns the plan for each port, sorted by port and protocol. If two targets have the
// same port, the first target by key gets it.
func Egress(input EgressInput) []EgressPort {
	byKey := func(a, b egress.Target) int { return cmp.Compare(a.Key, b.Key) }
	seen := make(map[EgressKey]bool, len(input.Targets)+len(input.Leaving))
	out := make([]EgressPort, 0, len(input.Targets)+len(input.Leaving))
	add := func(targets []egress.Target, leaving bool) {
		for _, t := range slices.SortedFunc(slices.Values(targets), byKey) {
			if key := EgressKeyOf(t); !seen[key] {
				seen[key] = true
				out = append(out, egressPort(t, leaving, input))
			}
		}
	}
	add(input.Targets, false)
	add(input.Leaving, true)
	slices.SortFunc(out, func(a, b EgressPort) int {
		return cmp.Or(cmp.Compare(a.Target.ProxyPort, b.Target.ProxyPort), cmp.Compare(a.Target.Protocol, b.Target.Protocol))
	})
	return out
}

func egressPort(t egress.Target, leaving bool, input EgressInput) EgressPort {
	p := EgressPort{Target: t, Leaving: leaving}
	switch {
	case t.ProxyPort < egress.FirstPort || t.ProxyPort > egress.LastPort || t.Port < 1 || t.Port > 65535:
		p.Message = messageEgressRange
		return p
	case t.Protocol == corev1.ProtocolUDP && !input.Kernel:
		p.Message = messageEgressUDP
		return p
	}

	p.Listen = !input.Kernel

	// A host that was found once is also dialled while tailscaled is unavailable: tailscaled itself
	// knows best when it is back.
	host := findHost(t, input)
	tags, family := missingTags(host.Devices, t), ""
	if input.Kernel {
		host, tags, family = p.forwardTo(input, host)
	}
	if host.Addr.IsValid() && tags == "" {
		p.Addr = netip.AddrPortFrom(host.Addr, uint16(t.Port))
		p.Probe = egressProbe(t, host.Addr)
	}

	key := EgressKeyOf(t)
	switch {
	case leaving:
		p.Message = messageEgressLeaving
	case input.Closed[key] != "":
		p.Message = input.Closed[key]
	case !input.Running:
		p.Message = messageNotInTailnet
	case family != "":
		p.Message = family
	case host.RouteUnused:
		p.Message = fmt.Sprintf(messageEgressRoutes, t.Host)
	case !host.Addr.IsValid():
		p.Message = noHost(t, input)
	case tags != "":
		p.Message = tags
	case input.Outside[key]:
		p.Message = fmt.Sprintf(messageEgressOutside, t.Address())
	case input.Unanswered[key]:
		p.Message = fmt.Sprintf(messageEgressSilent, t.Address())
	case input.Kernel && !p.applied(input):
		p.Message = messageEgressApplying
	case p.Probe == nil && offline(host.Devices):
		// A target that answers probes is available, even if the control server reports its device
		// as offline.
		p.Message = fmt.Sprintf(messageEgressOffline, host.Devices[0].Name, t.Host)
	default:
		p.Message = egressHealth(p, input.Health)
	}
	p.Ready = p.Message == ""
	if p.Ready && input.Kernel {
		p.Message = p.half(input)
	}
	if p.Ready && t.Name != "" && !input.Resolves(t.Name, host.Addr) {
		// Only the address matters: a device whose name has changed does no harm.
		p.Message = fmt.Sprintf(messageEgressName, t.Host, t.Name)
	}
	return p
}

// noHost returns why no device has the target's host. That the policy is the reason is certain only
// for a service, if control reports services that this node may see and that one is not among them.
// A name of the tailnet can also be that of a device.
func noHost(t egress.Target, input EgressInput) string {
	// An invalid address is a name.
	addr, _ := netip.ParseAddr(t.Host)
	for _, name := range slices.Sorted(maps.Keys(input.Visible)) {
		if name == t.Service || name == serviceNamed(t.Host, input.Suffix) || addr.IsValid() && slices.Contains(input.Visible[name], addr) {
			return fmt.Sprintf(messageEgressHostless, name)
		}
	}
	service := cmp.Or(t.Service, serviceNamed(t.Host, input.Suffix))
	if input.Visible == nil || service == "" {
		return fmt.Sprintf(messageEgressNoHost, t.Host)
	}
	ip := fmt.Sprintf("%s:%d", strings.ToLower(string(t.Protocol)), t.Port)
	grant := []any{service, text.QuotedList(input.Tags), strconv.Quote(service), strconv.Quote(ip)}
	if t.Service == "" {
		return fmt.Sprintf(messageEgressNoName, append([]any{t.Host}, grant...)...)
	}
	return fmt.Sprintf(messageEgressNotSeen, grant...)
}

// serviceNamed returns the service whose DNS name in the tailnet is host, if there is one.
func serviceNamed(host, suffix string) string {
	label, rest, dots := strings.Cut(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	if label == "" || dots && rest != suffix {
		return ""
	}
	return "svc:" + label
}

// findHost returns the device that has the target's host, or else one of its other addresses.
func findHost(t egress.Target, input EgressInput) localapi.Host {
	first := input.Find(t.Host)
	if first.Addr.IsValid() {
		return first
	}
	for _, name := range t.Alternatives {
		if h := input.Find(name); h.Addr.IsValid() {
			return h
		}
	}
	return first
}

// offline reports whether all devices that can get the traffic are offline.
func offline(devices []localapi.Device) bool {
	return len(devices) > 0 && !slices.ContainsFunc(devices, func(d localapi.Device) bool { return !d.Offline })
}

// missingTags returns which device lacks which tags of the target. All devices that can get the
// traffic must have the tags.
func missingTags(devices []localapi.Device, t egress.Target) string {
	for _, d := range devices {
		var missing []string
		for _, tag := range t.Tags {
			if !slices.Contains(d.Tags, tag) {
				missing = append(missing, tag)
			}
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			return fmt.Sprintf(messageEgressTags, d.Name, t.Host, list(missing))
		}
	}
	return ""
}

func egressProbe(t egress.Target, addr netip.Addr) *probe.Target {
	// UDP has no connections, so it cannot be probed.
	if t.HealthCheck == nil || t.Protocol == corev1.ProtocolUDP {
		return nil
	}
	return &probe.Target{
		Host:               addr.String(),
		Port:               uint16(t.Port),
		Path:               t.HealthCheck.Path,
		Interval:           t.HealthCheck.Interval.Duration,
		Timeout:            t.HealthCheck.Timeout.Duration,
		HealthyThreshold:   int(t.HealthCheck.HealthyThreshold),
		UnhealthyThreshold: int(t.HealthCheck.UnhealthyThreshold),
	}
}

func egressHealth(p EgressPort, health map[probe.Target]probe.Status) string {
	if p.Probe == nil {
		return ""
	}
	switch st := health[*p.Probe]; st.Health {
	case probe.Healthy:
		return ""
	case probe.Unhealthy:
		return fmt.Sprintf(messageEgressUnhealthy, p.Target.Address(), st.Reason)
	case probe.Unknown:
	}
	return messageEgressProbing
}

// EgressTargets returns the targets to probe.
func EgressTargets(ports []EgressPort) []probe.Target {
	var out []probe.Target
	for _, p := range ports {
		if p.Probe != nil && !p.Leaving {
			out = append(out, *p.Probe)
		}
	}
	return out
}

// EgressStatus returns the ports to report.
func EgressStatus(ports []EgressPort) []v1alpha1.EgressPort {
	messages := 0
	for _, p := range ports {
		if p.Message != "" {
			messages++
		}
	}
	var out []v1alpha1.EgressPort
	for _, p := range ports {
		out = append(out, v1alpha1.EgressPort{
			Port:     p.Target.ProxyPort,
			Protocol: p.Target.Protocol,
			Target:   p.Target.Key,
			Ready:    p.Ready,
			Message:  egress.Cut(p.Message, messages),
		})
	}
	return out
}
