// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// Messages of a service whose TLS cannot be terminated.
const (
	messageNoDNSName   = "Waiting for the DNS name of the service"
	messageReadingTLS  = "Waiting to read Secret %q, which holds the certificate: it must exist, and the proxies' Role must grant it"
	messageHTTPSOff    = "HTTPS is off in the tailnet, so Tailscale provides no certificate for %s: turn it on in Tailscale's admin console (DNS, HTTPS Certificates), or set spec.tls.certificateRef"
	messageNoneInTLS   = "Waiting for tailscaled to report whether the tailnet provides certificates"
	messageIssuing     = "Waiting for the certificate of %s, which machine %s gets from Tailscale; status.agent of that Machine shows the cause of a delay"
	messageNotIssued   = "Cannot get the certificate of %s from Tailscale: %s"
	messageOffered     = "Advertising the service without the certificate of %s for up to ten minutes, because Tailscale grants the name only to a host that advertises the service; if that takes longer, approve the machine as a host of the service"
	messageNotRenewed  = "Cannot renew the certificate of %s, the one from before is still in use: %s"
	messagePartSecret  = "Secret %q: %s"
	messageOldInSecret = "Secret %q: %s; the certificate from before is still in use"
	messageExpired     = "The certificate in Secret %q expired at %s, so that clients refuse it: renew it"
)

// HTTPS reports whether a tailnet provides certificates.
type HTTPS int

// HTTPS is unknown until tailscaled has reported it.
const (
	HTTPSUnknown HTTPS = iota
	HTTPSOn
	HTTPSOff
)

// A CertificateRef refers to a certificate in a Secret of the pod's namespace.
type CertificateRef struct {
	// Secret is the name of a Secret of type kubernetes.io/tls, or of the state Secret of the
	// machine that gets certificates from Tailscale.
	Secret string

	// Domain is the DNS name that Tailscale provides the certificate for. Tailscaled stores the
	// certificate in its state by this name (ipn/store/kubestore). Empty for a Secret of type
	// kubernetes.io/tls.
	Domain string
}

// Keys returns the keys of the Secret that hold the certificate and its private key.
func (r CertificateRef) Keys() (cert, key string) {
	if r.Domain == "" {
		return corev1.TLSCertKey, corev1.TLSPrivateKeyKey
	}
	return r.Domain + ".crt", r.Domain + ".key"
}

// String returns the Secret's name, and the domain after a slash.
func (r CertificateRef) String() string {
	if r.Domain == "" {
		return r.Secret
	}
	return r.Secret + "/" + r.Domain
}

// MarshalText encodes the reference as a key in JSON.
func (r CertificateRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText decodes the result of MarshalText.
func (r *CertificateRef) UnmarshalText(b []byte) error {
	r.Secret, r.Domain, _ = strings.Cut(string(b), "/")
	return nil
}

// A Certificate is the known state of a certificate in a Secret.
type Certificate struct {
	// Usable reports whether there is a certificate to terminate TLS with.
	Usable bool

	// Problem says what is wrong with the current content of the Secret. It names the Secret's key
	// and contains nothing of the value. Empty if there is no problem. With a problem, an earlier
	// good certificate is still usable.
	Problem string

	// NotAfter is when the usable certificate expires. Zero if there is none.
	NotAfter time.Time
}

// expired reports whether clients refuse the certificate.
func (c Certificate) expired(at time.Time) bool {
	return c.Usable && !c.NotAfter.IsZero() && at.After(c.NotAfter)
}

// An IssueProblem is why the issuer cannot get or renew a certificate.
type IssueProblem struct {
	// Reason is that of the condition of a service without its certificate.
	Reason xpv2.ConditionReason

	// Text continues a message that names the certificate.
	Text string
}

// A Termination is a port where the agent terminates TLS, or forwards requests, or both, or only
// connects to a backend by name, or to one of several.
// Tailscaled could terminate TLS with Tailscale's certificates, but each machine would then get
// a separate one: the certificate authority issues only five a week for the same name.
// Tailscaled could also forward requests, but sends no headers for tagged devices.
type Termination struct {
	// Listen is the loopback address that tailscaled forwards to.
	Listen netip.AddrPort `json:"listen"`

	// Secret and Domain identify the certificate, as in CertificateRef. Without a Secret, TLS is
	// not terminated.
	Secret string `json:"secret,omitempty"`
	Domain string `json:"domain,omitempty"`

	// Backend is the address that gets the decrypted connections or requests, as host:port. Empty if
	// there are several.
	Backend string `json:"backend"`

	// Balance has the backends of a port with several. Nil if there is one.
	Balance *balance.Config `json:"balance,omitempty"`

	// HTTP means that requests are forwarded with identity headers, instead of bytes.
	HTTP bool `json:"http,omitempty"`

	// HTTPS means that requests are forwarded over TLS, with the settings of each backend of Balance.
	HTTPS bool `json:"https,omitempty"`

	// ProxyProtocol is the version of the header that is sent before a connection to the backend. 0
	// means no header.
	ProxyProtocol int `json:"proxyProtocol,omitempty"`

	// Anonymous means that tailscaled does not send the addresses of clients. Connections then begin
	// with what the client sends.
	Anonymous bool `json:"anonymous,omitempty"`
}

// Equal reports whether both are the same, regardless of the health of backends.
func (t Termination) Equal(o Termination) bool {
	if !t.SameListener(o) {
		return false
	}
	return t.Balance == nil || t.Balance.Equal(*o.Balance)
}

// SameListener reports whether both differ at most in the backends among which connections are
// balanced. A listener can replace these while it serves.
func (t Termination) SameListener(o Termination) bool {
	if (t.Balance == nil) != (o.Balance == nil) {
		return false
	}
	t.Balance, o.Balance = nil, nil
	return t == o
}

// TLS reports whether TLS is terminated.
func (t Termination) TLS() bool { return t.Secret != "" }

// Certificate returns the reference to the certificate to terminate TLS with.
func (t Termination) Certificate() CertificateRef {
	return CertificateRef{Secret: t.Secret, Domain: t.Domain}
}

// headerInside is the version of the PROXY protocol header with which tailscaled sends the
// client's address to the agent.
const headerInside = 2

// addressOf returns the address of a target, and false if it has several or none is known. served is
// the present handler of the port.
func addressOf(t probe.Target, st probe.Status, served Handler) (netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(t.Host); err == nil {
		return netip.AddrPortFrom(a, t.Port), true
	}
	if st.Address.IsValid() {
		return netip.AddrPortFrom(st.Address, t.Port), true
	}
	at, err := netip.ParseAddrPort(served.Forward)
	return at, err == nil && st.Health == probe.Unknown && !at.Addr().IsLoopback() && at.Port() == t.Port
}

// dialed returns the address at which the agent connects to a target, as host:port.
func dialed(t probe.Target) string {
	return net.JoinHostPort(address.Absolute(t.Host), strconv.Itoa(int(t.Port)))
}

// handler returns the handler of a port whose backend is t, or of one with the backends of b, and the
// agent's termination behind it, if any. Both are nil while the name that the certificate is for is
// unknown.
//
// Tailscaled gets addresses alone: it would look up a name for each connection, and connect to
// whatever the name then leads to, such as itself. The agent checks each address that it dials.
func handler(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort, t probe.Target, b *balance.Config, input Input) (*Handler, *Termination) {
	http := p.Protocol.Requests()
	served := input.Serving[string(spec.ServiceName)][uint16(p.Port)]
	if at, ok := addressOf(t, input.Health[t], served); ok && b == nil && !http && p.TLS == nil {
		return &Handler{Forward: at.String(), ProxyProtocol: int(p.ProxyProtocol)}, nil
	}
	end := &Termination{Listen: loopback(spec, uint16(p.Port)), Balance: b, HTTP: http, HTTPS: p.Protocol == v1alpha1.AttachmentProtocolHTTPS, Anonymous: input.Anonymous}
	if b == nil {
		end.Backend = dialed(t)
	}
	if !http {
		end.ProxyProtocol = int(p.ProxyProtocol)
	}
	switch {
	case p.TLS == nil:
	case p.TLS.SecretName != "":
		end.Secret = p.TLS.SecretName
	case spec.DNSName == "":
		return nil, nil
	default:
		end.Secret, end.Domain = input.Issuer, spec.DNSName
	}
	return &Handler{Forward: end.Listen.String(), ProxyProtocol: headerInside}, end
}

const (
	// portBits is the number of bits of a service's port that are in the loopback port. The two
	// other bits are in the loopback address.
	portBits = 14

	// firstLoopbackPort is the first of 2^14 ports that need no privilege, and that Linux does not
	// use for outgoing connections (net.ipv4.ip_local_port_range).
	firstLoopbackPort = 1 << portBits

	// serviceBits is the number of bits in which the addresses of services differ. They are in
	// 100.64.0.0/10.
	serviceBits = 22
)

// loopback returns the address where the agent listens for a port of a service. It differs for
// all ports of all services, and is the same after every restart, so that a restart never
// changes the serve config. All of 127.0.0.0/8 belongs to the pod.
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

// hashed returns a substitute for the address of a service without IPv4.
func hashed(name string) uint32 {
	h := fnv.New32a()
	// Write never returns an error (hash.Hash).
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// A tlsState says whether the TLS of a service can be terminated.
type tlsState struct {
	// refused says why it cannot. Empty if it can. reason is the matching condition reason; it is
	// empty while the missing information is still on its way.
	refused string
	reason  xpv2.ConditionReason

	// unknown says what is not known yet. Empty if everything is known.
	unknown string

	// warning describes a problem that will occur later.
	warning string
}

// validateTLS returns whether TLS can be terminated on all ports of a service that need it.
func validateTLS(spec v1alpha1.ServiceAttachmentSpec, input Input) tlsState {
	var st tlsState
	for _, p := range spec.Ports {
		if !hasBackend(p) || p.TLS == nil {
			continue
		}
		switch {
		case p.TLS.SecretName != "":
			st.validateSecret(p.TLS.SecretName, input)
		case spec.DNSName == "":
			st.refuse("", messageNoDNSName)
		case input.HTTPS == HTTPSOff:
			st.refuse(meta.ReasonHTTPSDisabled, fmt.Sprintf(messageHTTPSOff, spec.DNSName))
		case input.HTTPS == HTTPSUnknown:
			st.unknown = cmp.Or(st.unknown, messageNoneInTLS)
		default:
			st.validateIssued(spec.DNSName, input)
		}
	}
	return st
}

// refuse records a refusal, unless there already is one.
func (st *tlsState) refuse(reason xpv2.ConditionReason, message string) {
	if st.refused == "" {
		st.reason, st.refused = reason, message
	}
}

func (st *tlsState) validateSecret(name string, input Input) {
	c, loaded := input.Certificates[CertificateRef{Secret: name}]
	switch {
	case !loaded:
		st.unknown = cmp.Or(st.unknown, fmt.Sprintf(messageReadingTLS, name))
	case !c.Usable:
		st.refuse(meta.ReasonCertificateNotUsable, fmt.Sprintf(messagePartSecret, name, c.Problem))
	case c.Problem != "":
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageOldInSecret, name, c.Problem))
	case c.expired(input.At):
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageExpired, name, c.NotAfter.UTC().Format(time.RFC3339)))
	}
}

// validateIssued checks the certificate that Tailscale provides for a name.
func (st *tlsState) validateIssued(name string, input Input) {
	c, loaded := input.Certificates[CertificateRef{Secret: input.Issuer, Domain: name}]
	problem, failed := input.Issuing[name]
	switch {
	case !c.Usable && input.Offered[name]:
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageOffered, name))
	case !c.Usable && failed:
		st.refuse(problem.Reason, fmt.Sprintf(messageNotIssued, name, problem.Text))
	case !loaded:
		st.unknown = cmp.Or(st.unknown, fmt.Sprintf(messageIssuing, name, input.Issuer))
	case !c.Usable:
		st.refuse("", fmt.Sprintf(messageIssuing, name, input.Issuer))
	case failed:
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageNotRenewed, name, problem.Text))
	case c.expired(input.At):
		st.warning = cmp.Or(st.warning, fmt.Sprintf(messageExpired, input.Issuer, c.NotAfter.UTC().Format(time.RFC3339)))
	}
}

// TerminationsOf returns the terminations by service, for the services that have any.
func TerminationsOf(services []Service) map[string][]Termination {
	out := map[string][]Termination{}
	for _, s := range services {
		if len(s.Terminations) > 0 {
			out[s.Name] = s.Terminations
		}
	}
	return out
}

// Domains returns the names that need certificates from Tailscale, sorted and unique.
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
