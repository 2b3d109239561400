// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"crypto/rand"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// doNotValidate is the port that accepts whatever a host serves.
const doNotValidate = "do-not-validate"

// Refusals of a service, as measured on a real tailnet (abn/ansible-tailscale-admin,
// docs/troubleshooting.md). The words about the range and about an address in use are
// assumptions: the source says only that the range is named.
const (
	noPorts       = `ports are empty, use "do-not-validate" to opt out of port validation`
	addrsOfNew    = "when creating a new service, addrs must be empty or contain 1 IPv4 address"
	addrsOfOld    = "when updating a service, addrs must contain 2 elements"
	addrReserved  = "bad IPv4 address: address is reserved for use by Tailscale"
	addrInUse     = "bad IPv4 address: address is already in use"
	addrOutOfCGN  = "bad IPv4 address: address must be in 100.64.0.0/10"
	addrIPv6Fixed = "bad IPv6 address: the IPv6 address of a service cannot be changed"
)

// reservedIPv4 are the ranges of 100.64.0.0/10 that neither devices nor services get
// (https://tailscale.com/kb/1015/100.x-addresses).
var reservedIPv4 = []netip.Prefix{
	netip.MustParsePrefix("100.100.0.0/24"),
	netip.MustParsePrefix("100.100.100.0/24"),
	netip.MustParsePrefix("100.115.92.0/23"),
}

// A service has stable virtual addresses. Its JSON is the API's: empty values are
// absent (abn/ansible-tailscale-admin, tests/unit/plugins/modules/test_tailscale_service.py).
type service struct {
	Name        string            `json:"name"`
	Addrs       []string          `json:"addrs,omitempty"`
	Comment     string            `json:"comment,omitempty"`
	DisplayName string            `json:"displayName,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Ports       []string          `json:"ports,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
}

func (v *service) clone() *service {
	c := *v
	c.Addrs, c.Ports, c.Tags = slices.Clone(v.Addrs), slices.Clone(v.Ports), slices.Clone(v.Tags)
	c.Annotations = maps.Clone(v.Annotations)
	return &c
}

func (v *service) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(v.Addrs))
	for _, a := range v.addrs() {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

func (v *service) addrs() []netip.Addr {
	out := make([]netip.Addr, 0, len(v.Addrs))
	for _, a := range v.Addrs {
		// Only allocateLocked and readdressLocked let addresses in.
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// validate checks the rules that need no store.
func (v *service) validate() error {
	if err := tailcfg.ServiceName(v.Name).Validate(); err != nil {
		return errors.Wrap(err, "invalid service name")
	}
	if len(v.DisplayName) > 64 {
		return errors.New("displayName must not be longer than 64 characters")
	}
	if len(v.Ports) == 0 {
		return errors.New(noPorts)
	}
	for _, p := range v.Ports {
		if p == doNotValidate {
			if len(v.Ports) > 1 {
				return errors.Errorf("port %q cannot be combined with others", p)
			}
			continue
		}
		n, ok := strings.CutPrefix(p, "tcp:")
		if i, err := strconv.ParseUint(n, 10, 16); !ok || err != nil || i == 0 {
			return errors.Errorf("invalid port %q: must be tcp:<port> or %s", p, doNotValidate)
		}
	}
	for _, t := range v.Tags {
		if !strings.HasPrefix(t, "tag:") {
			return errors.Errorf("invalid tag %q: tags must begin with tag:", t)
		}
	}
	return nil
}

// canonical puts the tags of a service in an order of the server's own, which is not
// the caller's (abn/ansible-tailscale-admin, as above). Which order it is no source
// says: this one is descending, so that no caller relies on another.
func (v *service) canonical() {
	slices.Sort(v.Tags)
	v.Tags = slices.Compact(v.Tags)
	slices.Reverse(v.Tags)
}

// allocateLocked sets the addresses of a new service: the requested IPv4 address, or a free
// one, and an IPv6 address that the server chooses. The IPv6 address is independent of the IPv4
// address, as the examples of the OpenAPI document show.
func (s *Server) allocateLocked(v *service) error {
	if len(v.Addrs) > 1 {
		return errors.New(addrsOfNew)
	}
	if len(v.Addrs) == 1 {
		if err := s.freeIPv4Locked(v.Addrs[0], nil); err != nil {
			return err
		}
		v.Addrs = []string{v.Addrs[0], s.st.freeServiceIPv6()}
		return nil
	}
	for range 1 << 16 {
		s.st.LastSvcIP++
		n := s.st.LastSvcIP % (254 * 254)
		a := netip.AddrFrom4([4]byte{100, 96, byte(n / 254), byte(n%254) + 1})
		if !s.st.addrTaken(a) && !s.st.FormerAddrs[a.String()] {
			v.Addrs = []string{a.String(), s.st.freeServiceIPv6()}
			return nil
		}
	}
	return errors.New("no address is free")
}

// readdressLocked checks the addresses of an update: both must be there, the IPv4
// may change, the IPv6 may not (OpenAPI: VIPServiceInfoPut).
func (s *Server) readdressLocked(v, old *service) error {
	switch {
	case len(v.Addrs) != 2:
		return errors.New(addrsOfOld)
	case v.Addrs[1] != old.Addrs[1]:
		return errors.New(addrIPv6Fixed)
	}
	return s.freeIPv4Locked(v.Addrs[0], old)
}

// freeIPv4Locked checks that a service may have an IPv4 address: its present one, or
// one that is free.
func (s *Server) freeIPv4Locked(addr string, owner *service) error {
	a, err := netip.ParseAddr(addr)
	if err != nil || !a.Is4() || !tsaddr.CGNATRange().Contains(a) {
		return errors.New(addrOutOfCGN)
	}
	if slices.ContainsFunc(reservedIPv4, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return errors.New(addrReserved)
	}
	if owner != nil && owner.Addrs[0] == a.String() {
		return nil
	}
	if s.st.addrTaken(a) || (s.switches.HoldFormerIPv4 && s.st.FormerAddrs[a.String()]) {
		return errors.New(addrInUse)
	}
	return nil
}

// freeServiceIPv6 picks an address of the form that services have,
// fd7a:115c:a1e0::xxxx:xxxx.
func (st *state) freeServiceIPv6() string {
	for {
		b := tsaddr.TailscaleULARange().Addr().As16()
		// crypto/rand.Read never fails since Go 1.24.
		rand.Read(b[12:])
		// The highest bit keeps clear of Tailscale's own address, ::53.
		b[12] |= 0x80
		if a := netip.AddrFrom16(b); !st.addrTaken(a) {
			return a.String()
		}
	}
}

func (st *state) addrTaken(a netip.Addr) bool {
	if a == tsaddr.TailscaleServiceIP() {
		return true
	}
	for _, d := range st.Devices {
		if d.IPv4 == a || d.IPv6 == a {
			return true
		}
	}
	text := a.String()
	for _, v := range st.Services {
		if slices.Contains(v.Addrs, text) {
			return true
		}
	}
	return false
}

// validate checks the annotations of a service.
func (l AnnotationLimits) validate(annotations map[string]string) error {
	if l.Count > 0 && len(annotations) > l.Count {
		return errors.Errorf("too many annotations: at most %d are allowed", l.Count)
	}
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		if l.KeyBytes > 0 && len(k) > l.KeyBytes {
			return errors.Errorf("annotation key is too long: at most %d bytes are allowed", l.KeyBytes)
		}
		if l.ValueBytes > 0 && len(annotations[k]) > l.ValueBytes {
			return errors.Errorf("annotation value is too long: at most %d bytes are allowed", l.ValueBytes)
		}
	}
	return nil
}
