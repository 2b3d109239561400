// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

func TestHTTPS(t *testing.T) {
	type want struct {
		Terminations []Termination
		Handlers     Handlers
		Targets      []probe.Target
		Unhealthy    []int32
		Advertise    bool
		Message      string
	}
	listen := netip.MustParseAddrPort("127.36.0.1:16464")
	// secure returns an attachment whose port has backends with these settings.
	secure := func(settings ...*v1alpha1.AttachmentBackendTLS) v1alpha1.ServiceAttachment {
		a := balancedAttachment("10.96.0.1", "10.96.0.2")
		p := &a.Spec.Ports[0]
		p.Protocol, p.Backend, p.Backends = v1alpha1.AttachmentProtocolHTTPS, nil, p.Backends[:len(settings)]
		for i := range p.Backends {
			p.Backends[i].TLS = settings[i]
		}
		a.Spec.Authorities = []v1alpha1.AttachmentAuthorities{{Name: "ca", Certificates: "PEM"}}
		return a
	}
	public, private := &v1alpha1.AttachmentBackendTLS{ServerName: "web.example.com"}, &v1alpha1.AttachmentBackendTLS{ServerName: "web.default.svc", Authorities: "ca"}
	path := secure(private)
	path.Spec.HealthCheck.Path = "/healthz"
	backendOnly := secure(public)
	backendOnly.Spec.Ports[0].Backend, backendOnly.Spec.Ports[0].Backends = &v1alpha1.AttachmentBackend{Host: "10.96.0.1", Port: 8080}, nil
	later := balancedAttachment("10.96.0.1", "10.96.0.2")
	later.Spec.Ports[0].Protocol = "HTTP3"
	mixed := secure(public)
	mixed.Spec.Ports[0].Backends[0].TLS = nil
	mixed.Spec.Ports = append(mixed.Spec.Ports, v1alpha1.AttachmentPort{Port: 81, Backend: &v1alpha1.AttachmentBackend{Host: "10.96.0.1", Port: 8080}})

	unknown := want{Unhealthy: []int32{80}, Handlers: Handlers{}, Message: "This version of the agent does not know the protocol or the TLS settings of ports 80, and does not serve them; upgrade the provider"}
	checked := tgt("10.96.0.1")
	checked.Path, checked.TLS = "/healthz", backendtls.Settings{ServerName: "web.default.svc", Authorities: "PEM"}
	end := func(b ...balance.Backend) want {
		for i := range b {
			b[i].Weight, b[i].Health = i+1, probe.Healthy
		}
		return want{
			Terminations: []Termination{{Listen: listen, HTTP: true, HTTPS: true, Balance: &balance.Config{Backends: b}}},
			Handlers:     Handlers{80: {Forward: listen.String(), ProxyProtocol: headerInside}},
			Advertise:    true,
		}
	}
	probed := func(w want, targets ...probe.Target) want {
		w.Targets = targets
		return w
	}
	cases := map[string]struct {
		reason     string
		attachment v1alpha1.ServiceAttachment
		want       want
	}{
		"One": {
			reason:     "A port with one backend is served by the agent, with the authorities of the system, and probed with a connection.",
			attachment: secure(public),
			want:       probed(end(balance.Backend{Address: "10.96.0.1:8080", TLS: backendtls.Settings{ServerName: "web.example.com"}}), tgt("10.96.0.1")),
		},
		"Two": {
			reason:     "Each backend has its own name and authorities.",
			attachment: secure(public, private),
			want: probed(end(
				balance.Backend{Address: "10.96.0.1:8080", TLS: backendtls.Settings{ServerName: "web.example.com"}},
				balance.Backend{Address: "10.96.0.2:8080", TLS: backendtls.Settings{ServerName: "web.default.svc", Authorities: "PEM"}}), tgt("10.96.0.1"), tgt("10.96.0.2")),
		},
		"Path": {
			reason:     "A path is probed with the same verification.",
			attachment: path,
			want:       probed(end(balance.Backend{Address: "10.96.0.1:8080", TLS: checked.TLS}), checked),
		},
		"NoSettings": {
			reason:     "Without settings, which a definition of an earlier version drops, the port is not served.",
			attachment: secure(public, nil), want: unknown,
		},
		"NoName": {
			reason:     "Nor is it without a name.",
			attachment: secure(&v1alpha1.AttachmentBackendTLS{Authorities: "ca"}), want: unknown,
		},
		"NoAuthorities": {
			reason:     "Nor without the named authorities: those of the system are others.",
			attachment: secure(&v1alpha1.AttachmentBackendTLS{ServerName: "web.default.svc", Authorities: "gone"}), want: unknown,
		},
		"BackendOnly": {
			reason:     "Nor with the field that has no settings.",
			attachment: backendOnly, want: unknown,
		},
		"LaterProtocol": {
			reason:     "Bytes are not forwarded for a protocol of a later version.",
			attachment: later, want: unknown,
		},
		"Beside": {
			reason:     "Other ports are served.",
			attachment: mixed,
			want: want{
				Targets: []probe.Target{tgt("10.96.0.1")}, Unhealthy: []int32{80}, Handlers: Handlers{81: {Forward: "10.96.0.1:8080"}},
				Advertise: true, Message: unknown.Message,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			input := Input{Attachments: []v1alpha1.ServiceAttachment{tc.attachment}, Health: map[probe.Target]probe.Status{}}
			for _, target := range []probe.Target{tgt("10.96.0.1"), tgt("10.96.0.2"), checked} {
				input.Health[target] = probe.Status{Health: probe.Healthy}
			}
			services := Services(input)
			if len(services) != 1 {
				t.Fatalf("want one service, got %v", services)
			}
			s := services[0]
			got := want{Terminations: s.Terminations, Handlers: s.Handlers, Targets: s.Targets, Unhealthy: s.Unhealthy, Advertise: s.Advertise, Message: s.Message}
			if len(got.Targets) == 0 {
				got.Targets = nil
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("%s\nServices(...): -want, +got:\n%s", tc.reason, diff)
			}
			if host, ok := forwardable(tc.attachment.Spec); ok {
				t.Errorf("%s\nwant no host for the kernel to forward to, got %s", tc.reason, host)
			}
		})
	}
}

// TestHTTPSAnonymous verifies that a service whose requests lack identity says so.
func TestHTTPSAnonymous(t *testing.T) {
	p := v1alpha1.AttachmentPort{Protocol: v1alpha1.AttachmentProtocolHTTPS, Backends: []v1alpha1.AttachmentShare{{}}}
	if !wantsClients([]v1alpha1.AttachmentPort{p}) {
		t.Error("a port with identity headers needs the addresses of clients")
	}
}
