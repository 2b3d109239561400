// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Messages of a service whose TLS cannot be ended.
const (
	messageNoDNSName   = "Waiting for the DNS name of the service"
	messageReadingTLS  = "Waiting to read Secret %q, which holds the certificate: it must exist, and the proxies' Role must grant it"
	messageHTTPSOff    = "HTTPS is off in the tailnet, so Tailscale provides no certificate for %s: turn it on in Tailscale's admin console (DNS, HTTPS Certificates), or set spec.tls.certificateRef"
	messageNoneInTLS   = "Waiting for tailscaled to tell whether the tailnet provides certificates"
	messagePartSecret  = "Secret %q: %s"
	messageOldInSecret = "Secret %q: %s; the certificate from before is still in use"
)

// HTTPS tells whether a tailnet provides certificates.
type HTTPS int

// It is unknown until tailscaled has told.
const (
	HTTPSUnknown HTTPS = iota
	HTTPSOn
	HTTPSOff
)

// A Certificate is what is known of a Secret's certificate.
type Certificate struct {
	// Usable tells whether there is one to end TLS with.
	Usable bool

	// Problem tells what is wrong with what the Secret holds now, naming its key
	// and nothing of its value. Empty if nothing is. A certificate is usable
	// nevertheless where an earlier one was good.
	Problem string
}

// A Termination is TLS that the agent ends, with the certificate of a Secret.
type Termination struct {
	// Listen is the loopback address that tailscaled forwards to.
	Listen netip.AddrPort `json:"listen"`

	// Secret of type kubernetes.io/tls in the pod's namespace.
	Secret string `json:"secret"`

	// Backend that gets what was encrypted, as host:port.
	Backend string `json:"backend"`

	// HTTP hands on requests, with headers that tell who asks, instead of bytes.
	HTTP bool `json:"http,omitempty"`

	// ProxyProtocol is the version of the header that goes before a connection
	// to the backend. 0 is none.
	ProxyProtocol int `json:"proxyProtocol,omitempty"`
}

// headerInside is the version of the PROXY protocol by which tailscaled tells the
// agent of the client.
const headerInside = 2

// handler of a port, and what the agent does behind it. Nil is nothing.
func handler(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort, backend string) (Handler, *Termination) {
	http := p.Protocol == v1alpha1.AttachmentProtocolHTTP
	h := Handler{Forward: backend, HTTP: http, ProxyProtocol: int(p.ProxyProtocol)}
	if http {
		h.ProxyProtocol = 0
	}
	if p.TLS != nil && p.TLS.SecretName != "" {
		t := &Termination{
			Listen:        loopback(spec, uint16(p.Port)),
			Secret:        p.TLS.SecretName,
			Backend:       backend,
			HTTP:          http,
			ProxyProtocol: h.ProxyProtocol,
		}
		return Handler{Forward: t.Listen.String(), ProxyProtocol: headerInside}, t
	}
	h.TLS = p.TLS != nil
	if h.HTTP || h.TLS {
		h.DNSName = spec.DNSName
	}
	return h, nil
}

const (
	// portBits are those of a service's port that are told by the loopback port.
	// The two others are told by the address.
	portBits = 14

	// firstLoopbackPort is the first of 2^14 that need no privilege, and that
	// Linux gives to no outgoing connection (net.ipv4.ip_local_port_range).
	firstLoopbackPort = 1 << portBits

	// serviceBits are those in which services' addresses differ, which are of
	// 100.64.0.0/10.
	serviceBits = 22
)

// loopback returns where the agent listens for a port of a service. No two ports of
// any services have the same, and it is the same after every restart, so that the
// serve config never changes for it: all of 127.0.0.0/8 is the pod's own.
func loopback(spec v1alpha1.ServiceAttachmentSpec, port uint16) netip.AddrPort {
	service := hashed(string(spec.ServiceName))
	for _, a := range spec.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() {
			b := ip.As4()
			service = binary.BigEndian.Uint32(b[:])
			break
		}
	}
	addr := 127<<24 | uint32(port>>portBits)<<serviceBits | service&(1<<serviceBits-1)
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], addr)
	return netip.AddrPortFrom(netip.AddrFrom4(b), firstLoopbackPort|port&(firstLoopbackPort-1))
}

// hashed stands for the address of a service without IPv4.
func hashed(name string) uint32 {
	h := fnv.New32a()
	// It cannot fail (hash.Hash).
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// A tlsState is whether the TLS of a service can be ended.
type tlsState struct {
	// refused tells why it cannot. Empty if it can.
	refused string

	// unknown tells what is not known yet. Empty if all is.
	unknown string

	// warning tells what will be wrong later.
	warning string
}

// judgeTLS tells whether all that is served of a service can be.
func judgeTLS(spec v1alpha1.ServiceAttachmentSpec, in Input) tlsState {
	var st tlsState
	for _, p := range spec.Ports {
		if p.Backend == nil {
			continue
		}
		secret := ""
		if p.TLS != nil {
			secret = p.TLS.SecretName
		}
		named := p.TLS != nil || p.Protocol == v1alpha1.AttachmentProtocolHTTP
		switch {
		case secret != "":
			st.judgeSecret(secret, in)
		case named && spec.DNSName == "":
			st.refused = cmp.Or(st.refused, messageNoDNSName)
		case p.TLS != nil && in.HTTPS == HTTPSOff:
			st.refused = cmp.Or(st.refused, fmt.Sprintf(messageHTTPSOff, spec.DNSName))
		case p.TLS != nil && in.HTTPS == HTTPSUnknown:
			st.unknown = cmp.Or(st.unknown, messageNoneInTLS)
		}
	}
	return st
}

func (st *tlsState) judgeSecret(name string, in Input) {
	c, known := in.Certificates[name]
	switch {
	case !known:
		st.unknown = cmp.Or(st.unknown, fmt.Sprintf(messageReadingTLS, name))
	case !c.Usable:
		st.refused = cmp.Or(st.refused, fmt.Sprintf(messagePartSecret, name, c.Problem))
	case c.Problem != "":
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageOldInSecret, name, c.Problem))
	}
}

// TerminationsOf returns what the agent ends, by service, for those services that
// have some.
func TerminationsOf(services []Service) map[string][]Termination {
	out := map[string][]Termination{}
	for _, s := range services {
		if len(s.Terminations) > 0 {
			out[s.Name] = s.Terminations
		}
	}
	return out
}

func sortTerminations(ts []Termination) {
	slices.SortFunc(ts, func(a, b Termination) int { return a.Listen.Compare(b.Listen) })
}
