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
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Messages of a service whose TLS cannot be ended.
const (
	messageNoDNSName   = "Waiting for the DNS name of the service"
	messageReadingTLS  = "Waiting to read Secret %q, which holds the certificate: it must exist, and the proxies' Role must grant it"
	messageHTTPSOff    = "HTTPS is off in the tailnet, so Tailscale provides no certificate for %s: turn it on in Tailscale's admin console (DNS, HTTPS Certificates), or set spec.tls.certificateRef"
	messageNoneInTLS   = "Waiting for tailscaled to tell whether the tailnet provides certificates"
	messageIssuing     = "Waiting for the certificate of %s, which machine %s gets from Tailscale; status.agent of that Machine tells what is in the way"
	messageNotIssued   = "Cannot get the certificate of %s from Tailscale: %s"
	messageOffered     = "Advertising the service without the certificate of %s for up to ten minutes, because Tailscale grants the name only to a host that advertises the service; if that takes longer, approve the machine as a host of the service"
	messageNotRenewed  = "Cannot renew the certificate of %s, the one from before is still in use: %s"
	messagePartSecret  = "Secret %q: %s"
	messageOldInSecret = "Secret %q: %s; the certificate from before is still in use"
)

// HTTPS reports whether a tailnet provides certificates.
type HTTPS int

// It is unknown until tailscaled has reported it.
const (
	HTTPSUnknown HTTPS = iota
	HTTPSOn
	HTTPSOff
)

// A CertificateRef says where a certificate is: a Secret in the pod's namespace.
type CertificateRef struct {
	// Secret of type kubernetes.io/tls, or the state Secret of the machine that
	// gets certificates from Tailscale.
	Secret string

	// Domain is the DNS name that Tailscale provides the certificate for. Tailscaled
	// keeps it in its state by that name (ipn/store/kubestore). Empty in a Secret of
	// type kubernetes.io/tls.
	Domain string
}

// Keys of the Secret that hold the certificate and its key.
func (r CertificateRef) Keys() (cert, key string) {
	if r.Domain == "" {
		return corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	}
	return r.Domain + ".crt", r.Domain + ".key"
}

// String is the Secret, and the domain after a slash.
func (r CertificateRef) String() string {
	if r.Domain == "" {
		return r.Secret
	}
	return r.Secret + "/" + r.Domain
}

// MarshalText makes it a key of JSON.
func (r CertificateRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText undoes MarshalText.
func (r *CertificateRef) UnmarshalText(b []byte) error {
	r.Secret, r.Domain, _ = strings.Cut(string(b), "/")
	return nil
}

// A Certificate is what is known of a Secret's certificate.
type Certificate struct {
	// Usable reports whether there is one to end TLS with.
	Usable bool

	// Problem says what is wrong with what the Secret holds now, naming its key
	// and nothing of its value. Empty if nothing is. A certificate is usable
	// nevertheless where an earlier one was good.
	Problem string
}

// A Termination is TLS that the agent ends, or requests that it hands on, or both.
// Tailscaled could end TLS with Tailscale's own certificate, but each machine would get
// one of its own: a limit of the certificate authority is five a week for the same name.
// It could forward requests, too, but sends no headers for tagged devices.
type Termination struct {
	// Listen is the loopback address that tailscaled forwards to.
	Listen netip.AddrPort `json:"listen"`

	// Secret and Domain are those of the certificate's CertificateRef. Without a
	// Secret there is no TLS to end.
	Secret string `json:"secret,omitempty"`
	Domain string `json:"domain,omitempty"`

	// Backend that gets what comes, without TLS, as host:port.
	Backend string `json:"backend"`

	// HTTP forwards requests with identity headers, instead of bytes.
	HTTP bool `json:"http,omitempty"`

	// ProxyProtocol is the version of the header that goes before a connection
	// to the backend. 0 is none.
	ProxyProtocol int `json:"proxyProtocol,omitempty"`
}

// TLS reports whether there is some to end.
func (t Termination) TLS() bool { return t.Secret != "" }

// Certificate to end TLS with.
func (t Termination) Certificate() CertificateRef {
	return CertificateRef{Secret: t.Secret, Domain: t.Domain}
}

// headerInside is the version of the PROXY protocol by which tailscaled tells the
// agent of the client.
const headerInside = 2

// handler of a port, and what the agent does behind it. Nil is nothing. There is
// neither while the name is missing that the certificate is for.
func handler(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort, backend, issuer string) (*Handler, *Termination) {
	http := p.Protocol == v1alpha1.AttachmentProtocolHTTP
	if !http && p.TLS == nil {
		return &Handler{Forward: backend, ProxyProtocol: int(p.ProxyProtocol)}, nil
	}
	t := &Termination{Listen: loopback(spec, uint16(p.Port)), Backend: backend, HTTP: http}
	if !http {
		t.ProxyProtocol = int(p.ProxyProtocol)
	}
	switch {
	case p.TLS == nil:
	case p.TLS.SecretName != "":
		t.Secret = p.TLS.SecretName
	case spec.DNSName == "":
		return nil, nil
	default:
		t.Secret, t.Domain = issuer, spec.DNSName
	}
	return &Handler{Forward: t.Listen.String(), ProxyProtocol: headerInside}, t
}

const (
	// portBits are the bits of a service's port that are in the loopback port. The two
	// others are in the address.
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
	// refused says why it cannot. Empty if it can. reason is that in one word, and
	// empty while what is missing is on its way.
	refused string
	reason  xpv2.ConditionReason

	// unknown says what is not known yet. Empty if all is.
	unknown string

	// warning says what will be wrong later.
	warning string
}

// validateTLS reports whether all that is served of a service can be.
func validateTLS(spec v1alpha1.ServiceAttachmentSpec, in Input) tlsState {
	var st tlsState
	for _, p := range spec.Ports {
		if p.Backend == nil || p.TLS == nil {
			continue
		}
		switch {
		case p.TLS.SecretName != "":
			st.validateSecret(p.TLS.SecretName, in)
		case spec.DNSName == "":
			st.refuse("", messageNoDNSName)
		case in.HTTPS == HTTPSOff:
			st.refuse(meta.ReasonHTTPSDisabled, fmt.Sprintf(messageHTTPSOff, spec.DNSName))
		case in.HTTPS == HTTPSUnknown:
			st.unknown = cmp.Or(st.unknown, messageNoneInTLS)
		default:
			st.validateIssued(spec.DNSName, in)
		}
	}
	return st
}

// refuse, unless that is done already.
func (st *tlsState) refuse(reason xpv2.ConditionReason, message string) {
	if st.refused == "" {
		st.reason, st.refused = reason, message
	}
}

func (st *tlsState) validateSecret(name string, in Input) {
	c, known := in.Certificates[CertificateRef{Secret: name}]
	switch {
	case !known:
		st.unknown = cmp.Or(st.unknown, fmt.Sprintf(messageReadingTLS, name))
	case !c.Usable:
		st.refuse(meta.ReasonCertificateNotUsable, fmt.Sprintf(messagePartSecret, name, c.Problem))
	case c.Problem != "":
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageOldInSecret, name, c.Problem))
	}
}

// validateIssued judges by the certificate that Tailscale provides for a name.
func (st *tlsState) validateIssued(name string, in Input) {
	c, known := in.Certificates[CertificateRef{Secret: in.Issuer, Domain: name}]
	problem := in.Issuing[name]
	switch {
	case !c.Usable && in.Offered[name]:
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageOffered, name))
	case !c.Usable && problem != "":
		st.refuse(meta.ReasonCertificateNotIssued, fmt.Sprintf(messageNotIssued, name, problem))
	case !known:
		st.unknown = cmp.Or(st.unknown, fmt.Sprintf(messageIssuing, name, in.Issuer))
	case !c.Usable:
		st.refuse("", fmt.Sprintf(messageIssuing, name, in.Issuer))
	case problem != "":
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageNotRenewed, name, problem))
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

// Domains returns the names that the services want certificates of Tailscale for,
// sorted, each once.
func Domains(services []Service) []string {
	var out []string
	for _, s := range services {
		for _, t := range s.Terminations {
			if t.Domain != "" {
				out = append(out, t.Domain)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sortTerminations(ts []Termination) {
	slices.SortFunc(ts, func(a, b Termination) int { return a.Listen.Compare(b.Listen) })
}
