// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// tlsAttachment returns an attachment with one port, modified by fn.
func tlsAttachment(fn func(*v1alpha1.ServiceAttachmentSpec, *v1alpha1.AttachmentPort)) v1alpha1.ServiceAttachment {
	a := attachment("web", "svc:web", map[int32]string{443: "web.default.svc"})
	a.Spec.Addresses = []string{"100.100.1.2", "fd7a:115c:a1e0::1"}
	a.Spec.DNSName = "web.tail1234.ts.net"
	fn(&a.Spec, &a.Spec.Ports[0])
	return a
}

func TestTLS(t *testing.T) {
	listen := netip.MustParseAddrPort("127.36.1.2:16827")
	tailscales := func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) { p.TLS = &v1alpha1.AttachmentTLS{} }
	secrets := func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
		p.TLS = &v1alpha1.AttachmentTLS{SecretName: "web-tls"}
	}
	type want struct {
		Handlers     Handlers
		Terminations []Termination
		Advertise    bool
		Reason       xpv2.ConditionReason
		Message      string
	}
	ended := want{
		Handlers:     Handlers{443: {Forward: "127.36.1.2:16827", ProxyProtocol: 2}},
		Terminations: []Termination{{Listen: listen, Secret: "web-tls", Backend: "web.default.svc:8080"}},
	}
	verdict := func(w want, advertise bool, message string) want {
		w.Advertise, w.Message = advertise, message
		return w
	}
	tailscale := want{
		Handlers:     ended.Handlers,
		Terminations: []Termination{{Listen: listen, Secret: "set-0", Domain: "web.tail1234.ts.net", Backend: "web.default.svc:8080"}},
	}
	reasoned := func(w want, reason xpv2.ConditionReason) want {
		w.Reason = reason
		return w
	}
	ref := CertificateRef{Secret: "set-0", Domain: "web.tail1234.ts.net"}
	issued := map[CertificateRef]Certificate{ref: {Usable: true}}
	cases := map[string]struct {
		reason string
		fn     func(*v1alpha1.ServiceAttachmentSpec, *v1alpha1.AttachmentPort)
		input  Input
		want   want
	}{
		"Issued": {
			reason: "The agent terminates TLS with the certificate that the issuer got from Tailscale.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Certificates: issued},
			want:   verdict(tailscale, true, ""),
		},
		"NotIssued": {
			reason: "The message names the machine that gets the certificate.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Certificates: map[CertificateRef]Certificate{ref: {Problem: "key web.tail1234.ts.net.crt is missing or empty"}}, Advertised: []string{"svc:web"}},
			want: verdict(tailscale, false,
				"Waiting for the certificate of web.tail1234.ts.net, which machine set-0 gets from Tailscale; status.agent of that Machine shows the cause of a delay"),
		},
		"CannotIssue": {
			reason: "The issuer reports why it cannot get a certificate.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Issuing: map[string]IssueProblem{"web.tail1234.ts.net": {Reason: meta.ReasonCertificateNotIssued, Text: "429: too many certificates"}}},
			want:   reasoned(verdict(tailscale, false, "Cannot get the certificate of web.tail1234.ts.net from Tailscale: 429: too many certificates"), meta.ReasonCertificateNotIssued),
		},
		"CannotRenew": {
			reason: "A certificate that cannot be renewed is used, and a warning says why.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Certificates: issued, Issuing: map[string]IssueProblem{"web.tail1234.ts.net": {Reason: meta.ReasonCertificateNotIssued, Text: "429: too many certificates"}}},
			want:   verdict(tailscale, true, "Cannot renew the certificate of web.tail1234.ts.net, the one from before is still in use: 429: too many certificates"),
		},
		"Limited": {
			reason: "The reason says what kind of problem it is.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Issuing: map[string]IssueProblem{"web.tail1234.ts.net": {Reason: meta.ReasonCertificateLimited, Text: "a limit refuses it until 2026-11-25T22:00:00Z"}}},
			want:   reasoned(verdict(tailscale, false, "Cannot get the certificate of web.tail1234.ts.net from Tailscale: a limit refuses it until 2026-11-25T22:00:00Z"), meta.ReasonCertificateLimited),
		},
		"Expired": {
			reason: "A certificate that has expired is used, and a warning says so.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, At: time.Unix(1000, 1), Certificates: map[CertificateRef]Certificate{ref: {Usable: true, NotAfter: time.Unix(1000, 0)}}},
			want:   verdict(tailscale, true, `The certificate in Secret "set-0" expired at 1970-01-01T00:16:40Z, so that clients refuse it: renew it`),
		},
		"SecretExpired": {
			reason: "So it is with a certificate in a Secret.",
			fn:     secrets,
			input:  Input{At: time.Unix(1000, 1), Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Usable: true, NotAfter: time.Unix(1000, 0)}}},
			want:   verdict(ended, true, `The certificate in Secret "web-tls" expired at 1970-01-01T00:16:40Z, so that clients refuse it: renew it`),
		},
		"IssuedUnknown": {
			reason: "A new service waits until the issuer's state Secret was read.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn},
			want: verdict(tailscale, false,
				"Waiting for the certificate of web.tail1234.ts.net, which machine set-0 gets from Tailscale; status.agent of that Machine shows the cause of a delay"),
		},
		"IssuedUnknownAdvertised": {
			reason: "A restarted agent changes nothing before it has read the Secret.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOn, Advertised: []string{"svc:web"}},
			want:   verdict(tailscale, true, ""),
		},
		"HTTPSOff": {
			reason: "Without HTTPS in the tailnet there is no certificate, and the message says where to enable it.",
			fn:     tailscales,
			input:  Input{HTTPS: HTTPSOff, Certificates: issued, Advertised: []string{"svc:web"}},
			want: reasoned(verdict(tailscale, false,
				"HTTPS is off in the tailnet, so Tailscale provides no certificate for web.tail1234.ts.net: turn it on in Tailscale's admin console (DNS, HTTPS Certificates), or set spec.tls.certificateRef"), meta.ReasonHTTPSDisabled),
		},
		"HTTPSUnknown": {
			reason: "A new service is not advertised before tailscaled has reported whether HTTPS is on.",
			fn:     tailscales,
			input:  Input{Certificates: issued},
			want:   verdict(tailscale, false, messageNoneInTLS),
		},
		"HTTPSUnknownAdvertised": {
			reason: "Until tailscaled has reported whether HTTPS is on, an advertised service stays advertised.",
			fn:     tailscales,
			input:  Input{Certificates: issued, Advertised: []string{"svc:web"}},
			want:   verdict(tailscale, true, ""),
		},
		"NoName": {
			reason: "A certificate needs a name. Without a name nothing is forwarded without TLS.",
			fn: func(s *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.TLS, s.DNSName = &v1alpha1.AttachmentTLS{}, ""
			},
			input: Input{HTTPS: HTTPSOn},
			want:  want{Handlers: Handlers{}, Message: messageNoDNSName},
		},
		"HTTP": {
			reason: "The agent forwards requests without TLS too, which needs neither a name nor a certificate.",
			fn: func(s *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.Protocol, s.DNSName = v1alpha1.AttachmentProtocolHTTP, ""
			},
			input: Input{HTTPS: HTTPSOff},
			want: want{
				Handlers:     ended.Handlers,
				Terminations: []Termination{{Listen: listen, Backend: "web.default.svc:8080", HTTP: true}},
				Advertise:    true,
			},
		},
		"HTTPS": {
			reason: "The agent terminates TLS and forwards requests.",
			fn: func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.Protocol, p.TLS = v1alpha1.AttachmentProtocolHTTP, &v1alpha1.AttachmentTLS{}
			},
			input: Input{HTTPS: HTTPSOn, Certificates: issued},
			want: want{
				Handlers:     ended.Handlers,
				Terminations: []Termination{{Listen: listen, Secret: "set-0", Domain: "web.tail1234.ts.net", Backend: "web.default.svc:8080", HTTP: true}},
				Advertise:    true,
			},
		},
		"ProxyProtocol": {
			reason: "A backend gets the client's address in the header version of its spec.",
			fn: func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.ProxyProtocol = 1
			},
			want: want{Handlers: Handlers{443: {Forward: "10.96.0.10:8080", ProxyProtocol: 1}}, Advertise: true},
		},
		"Secret": {
			reason: "The agent terminates TLS with a Secret's certificate.",
			fn:     secrets,
			input:  Input{Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Usable: true}}},
			want:   verdict(ended, true, ""),
		},
		"SecretHTTP": {
			reason: "The agent can also forward requests after terminating TLS with a Secret's certificate.",
			fn: func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.TLS, p.Protocol = &v1alpha1.AttachmentTLS{SecretName: "web-tls"}, v1alpha1.AttachmentProtocolHTTP
			},
			input: Input{Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Usable: true}}},
			want: want{
				Handlers:     ended.Handlers,
				Terminations: []Termination{{Listen: listen, Secret: "web-tls", Backend: "web.default.svc:8080", HTTP: true}},
				Advertise:    true,
			},
		},
		"SecretProxyProtocol": {
			reason: "Tailscaled sends the agent version 2, whichever version the backend gets.",
			fn: func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.TLS, p.ProxyProtocol = &v1alpha1.AttachmentTLS{SecretName: "web-tls"}, 1
			},
			input: Input{Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Usable: true}}},
			want: want{
				Handlers:     ended.Handlers,
				Terminations: []Termination{{Listen: listen, Secret: "web-tls", Backend: "web.default.svc:8080", ProxyProtocol: 1}},
				Advertise:    true,
			},
		},
		"SecretBroken": {
			reason: "A service with an invalid certificate is not advertised, and the message names the key.",
			fn:     secrets,
			input: Input{
				Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Problem: "key tls.key is missing or empty"}},
				Advertised:   []string{"svc:web"},
			},
			want: reasoned(verdict(ended, false, `Secret "web-tls": key tls.key is missing or empty`), meta.ReasonCertificateNotUsable),
		},
		"SecretBrokenLater": {
			reason: "A service with an earlier valid certificate is advertised, and a warning names the problem.",
			fn:     secrets,
			input:  Input{Certificates: map[CertificateRef]Certificate{{Secret: "web-tls"}: {Usable: true, Problem: "key tls.key is missing or empty"}}},
			want:   verdict(ended, true, `Secret "web-tls": key tls.key is missing or empty; the certificate from before is still in use`),
		},
		"SecretUnknown": {
			reason: "A service waits until its Secret was read.",
			fn:     secrets,
			want:   verdict(ended, false, `Waiting to read Secret "web-tls", which holds the certificate: it must exist, and the proxies' Role must grant it`),
		},
		"SecretUnknownAdvertised": {
			reason: "A restarted agent changes nothing before it has read the Secret.",
			fn:     secrets,
			input:  Input{Advertised: []string{"svc:web"}},
			want:   verdict(ended, true, ""),
		},
		"Anonymous": {
			reason: "With a version of tailscaled that does not send clients' addresses, a service is served, and says what it lacks.",
			fn: func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) {
				p.Protocol = v1alpha1.AttachmentProtocolHTTP
			},
			input: Input{Anonymous: true},
			want: want{
				Handlers:     ended.Handlers,
				Terminations: []Termination{{Listen: listen, Backend: "web.default.svc:8080", HTTP: true, Anonymous: true}},
				Advertise:    true, Message: messageAnonymous,
			},
		},
		"AnonymousTCP": {
			reason: "A service that needs no addresses lacks nothing.",
			fn:     func(*v1alpha1.ServiceAttachmentSpec, *v1alpha1.AttachmentPort) {},
			input:  Input{Anonymous: true},
			want:   want{Handlers: Handlers{443: {Forward: "10.96.0.10:8080"}}, Advertise: true},
		},
		"AllPorts": {
			reason: "A service with all ports is forwarded as packets, without handlers in the serve config; the backend is probed.",
			fn:     func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) { p.Port = 0 },
			want:   want{Handlers: Handlers{}, Advertise: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.input.Issuer = "set-0"
			tc.input.Attachments = []v1alpha1.ServiceAttachment{tlsAttachment(tc.fn)}
			tc.input.Health = map[probe.Target]probe.Status{tgt("web.default.svc"): {Health: probe.Healthy, Address: netip.MustParseAddr("10.96.0.10")}}
			s := Services(tc.input)[0]
			got := want{Handlers: s.Handlers, Terminations: s.Terminations, Advertise: s.Advertise, Reason: s.Reason, Message: s.Message}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nServices(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDomains(t *testing.T) {
	got := Domains([]Service{
		{Terminations: []Termination{{Secret: "set-0", Domain: "web.tail1234.ts.net"}, {Secret: "web-tls"}}},
		{Terminations: []Termination{{Secret: "set-0", Domain: "db.tail1234.ts.net"}, {Secret: "set-0", Domain: "web.tail1234.ts.net"}}},
	})
	if diff := cmp.Diff([]string{"db.tail1234.ts.net", "web.tail1234.ts.net"}, got); diff != "" {
		t.Errorf("Domains(...): -want, +got:\n%s", diff)
	}
}

func TestCertificateRef(t *testing.T) {
	for _, want := range []CertificateRef{{Secret: "web-tls"}, {Secret: "set-0", Domain: "web.tail1234.ts.net"}} {
		b, err := json.Marshal(map[CertificateRef]int{want: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := map[CertificateRef]int{}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[CertificateRef]int{want: 1}, got); diff != "" {
			t.Errorf("\n%s must be unchanged after encoding and decoding: -want, +got:\n%s", b, diff)
		}
	}
}

func TestMissingService(t *testing.T) {
	s := Services(Input{
		Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{80: "web.default.svc", 81: "example.com"})},
		Health: map[probe.Target]probe.Status{
			tgt("web.default.svc"): {Health: probe.Unhealthy, Reason: probe.ReasonNoSuchHost},
			tgt("example.com"):     {Health: probe.Unhealthy, Reason: probe.ReasonNoSuchHost},
		},
	})[0]
	want := "No backend answers: example.com:8080 (no such host), " +
		"web.default.svc:8080 (there is no Service default/web, or it is headless and has no ready pod)"
	if diff := cmp.Diff(want, s.Message); diff != "" {
		t.Errorf("A missing Service must be reported in terms of Kubernetes: -want, +got:\n%s", diff)
	}
}

// TestLoopback checks that the addresses of all ports of all services are distinct, that none
// needs a privilege, and that none is used for outgoing connections.
func TestLoopback(t *testing.T) {
	seen := map[netip.AddrPort]string{}
	for _, addr := range []string{"100.64.0.1", "100.64.0.2", "100.100.1.2", "100.101.1.2", "100.127.255.254"} {
		for port := range 1 << 16 {
			name := netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(port)).String()
			at := loopback(v1alpha1.ServiceAttachmentSpec{ServiceName: "svc:web", Addresses: []string{"fd7a:115c:a1e0::1", addr}}, uint16(port))
			if other := seen[at]; other != "" {
				t.Fatalf("%s and %s both get %s", other, name, at)
			}
			seen[at] = name
			if !at.Addr().IsLoopback() || at.Port() < 16384 || at.Port() > 32767 {
				t.Fatalf("%s gets %s", name, at)
			}
		}
	}
	v6 := func(name v1alpha1.ServiceName) netip.AddrPort {
		return loopback(v1alpha1.ServiceAttachmentSpec{ServiceName: name, Addresses: []string{"fd7a:115c:a1e0::1"}}, 443)
	}
	if v6("svc:a") == v6("svc:b") {
		t.Error("Services without IPv4 must differ by name")
	}
}

func TestOwnServiceBesideSharedOne(t *testing.T) {
	tailscales := func(_ *v1alpha1.ServiceAttachmentSpec, p *v1alpha1.AttachmentPort) { p.TLS = &v1alpha1.AttachmentTLS{} }
	shared, own := tlsAttachment(tailscales), tlsAttachment(tailscales)
	own.Name, own.Spec.ServiceName, own.Spec.Addresses = "web-own", "svc:web-0a1b2c3d4e", []string{"100.100.1.3"}
	ref := CertificateRef{Secret: "set-0", Domain: "web.tail1234.ts.net"}
	services := Services(Input{
		Attachments:  []v1alpha1.ServiceAttachment{own, shared},
		Issuer:       "set-0",
		HTTPS:        HTTPSOn,
		Certificates: map[CertificateRef]Certificate{ref: {Usable: true}},
		Health:       map[probe.Target]probe.Status{target(*shared.Spec.Ports[0].Backend, shared.Spec.HealthCheck): {Health: probe.Healthy}},
	})
	if diff := cmp.Diff([]string{"svc:web", "svc:web-0a1b2c3d4e"}, Advertised(services)); diff != "" {
		t.Errorf("Advertised(...): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web.tail1234.ts.net"}, Domains(services)); diff != "" {
		t.Errorf("Domains(...): both services must share one certificate: -want, +got:\n%s", diff)
	}
	var listen []string
	for _, s := range services {
		for _, end := range s.Terminations {
			listen = append(listen, end.Listen.String())
		}
	}
	if diff := cmp.Diff([]string{"127.36.1.2:16827", "127.36.1.3:16827"}, listen); diff != "" {
		t.Errorf("terminations: each service must have separate ones: -want, +got:\n%s", diff)
	}
}
