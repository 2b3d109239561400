// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

func TestForward(t *testing.T) {
	port := func(from, to int32, host string) v1alpha1.AttachmentPort {
		return v1alpha1.AttachmentPort{Port: from, Backend: &v1alpha1.AttachmentBackend{Host: host, Port: to}}
	}
	addrs := func(as ...string) map[string][]netip.Addr {
		out := []netip.Addr{}
		for _, a := range as {
			out = append(out, netip.MustParseAddr(a))
		}
		return map[string][]netip.Addr{"web": out}
	}
	const v4 = `{"svc:web":{"IPv4Mapping":{"TailscaleServiceIP":"100.100.0.1","ClusterIP":"10.96.0.1"}}}`
	const v46 = `{"svc:web":{"IPv4Mapping":{"TailscaleServiceIP":"100.100.0.1","ClusterIP":"10.96.0.1"},` +
		`"IPv6Mapping":{"TailscaleServiceIP":"fd7a:115c:a1e0::1","ClusterIP":"fd00::1"}}}`
	applied := func(s string) Forwards {
		f, err := ForwardsIn([]byte(s))
		if err != nil {
			t.Fatalf("ForwardsIn(...): %v", err)
		}
		return f
	}
	both := address.Families{IPv4: true, IPv6: true}
	all := []v1alpha1.AttachmentPort{port(0, 80, "web")}
	same := []v1alpha1.AttachmentPort{port(80, 80, "web"), port(443, 443, "web")}

	cases := map[string]struct {
		reason    string
		ports     []v1alpha1.AttachmentPort
		input     ForwardInput
		want      string
		advertise bool
		message   string
	}{
		"Userspace": {
			reason: "Without Kernel networking, tailscaled forwards connections.",
			ports:  same, want: `{}`, advertise: true,
		},
		"UserspaceAllPorts": {
			reason: "A service with all ports needs Kernel networking.",
			ports:  all, want: `{}`, message: messageAllPorts,
		},
		"Applied": {
			reason: "A service that is set up is advertised.",
			ports:  same,
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1"), AppliedKnown: true, Applied: applied(v46)},
			want:   v46, advertise: true,
		},
		"OwnAddress": {
			reason: "The kernel must not forward to the pod itself or to its node.",
			ports:  all,
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("169.254.169.254")},
			want:   `{}`, message: "All ports need a backend with one address of a family in which this pod forwards, which is IPv4 and IPv6; web has 169.254.169.254",
		},
		"NotApplied": {
			reason: "A service that is not set up yet is not advertised.",
			ports:  same,
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1"), AppliedKnown: true},
			want:   v46, message: messageForwarding,
		},
		"RestartedBeforeStateIsKnown": {
			reason: "A restarted agent leaves a service advertised until it knows what is set up.",
			ports:  same,
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1"), Advertised: []string{"svc:web"}},
			want:   v46, advertise: true,
		},
		"RestartedBeforeAddressesAreKnown": {
			reason: "A restarted agent continues to forward until it knows the backend's address.",
			ports:  same,
			input:  ForwardInput{Families: both, Kernel: true, Previous: applied(v46), AppliedKnown: true, Applied: applied(v46)},
			want:   v46, advertise: true,
		},
		"Resolving": {
			reason: "A new service waits until its backend's address is known.",
			ports:  same, input: ForwardInput{Families: both, Kernel: true}, want: `{}`, message: messageResolving,
		},
		"BothFamilies": {
			reason:    "Each address family has a separate mapping.",
			ports:     all,
			input:     ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1"), Advertised: []string{"svc:web"}},
			want:      v46,
			advertise: true,
		},
		"OneFamily": {
			reason: "Tailscaled serves both addresses of a service whose backend has one family.",
			ports:  same, input: ForwardInput{Families: both, Kernel: true, Addresses: addrs("fd00::1")}, want: `{}`, advertise: true,
		},
		"PodOfOneFamily": {
			reason: "Tailscaled serves both addresses of a service in a pod that has one family.",
			ports:  same, input: ForwardInput{Families: address.Families{IPv4: true}, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1")}, want: `{}`, advertise: true,
		},
		"AllPortsOneFamily": {
			reason: "The kernel serves one address of a service with all ports, and a message names the other.",
			ports:  all, input: ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1"), AppliedKnown: true, Applied: applied(v4)}, want: v4, advertise: true,
			message: "Clients that use fd7a:115c:a1e0::1 do not reach the service: the kernel forwards within one address family, and web has 10.96.0.1. Set ipFamilyPolicy: PreferDualStack on the backend's Service, or list the service's ports instead of do-not-validate",
		},
		"AllPortsPodOfOneFamily": {
			reason: "The message names the pod's family if that is the cause.",
			ports:  all, input: ForwardInput{Families: address.Families{IPv4: true}, Kernel: true, Addresses: addrs("10.96.0.1", "fd00::1"), AppliedKnown: true, Applied: applied(v4)}, want: v4, advertise: true,
			message: "Clients that use fd7a:115c:a1e0::1 do not reach the service: the kernel forwards within one address family, and this pod forwards IPv4. Set ipFamilyPolicy: PreferDualStack on the backend's Service, or list the service's ports instead of do-not-validate",
		},
		"Dropped": {
			reason: "Tailscaled connects to addresses of Services that forwarded packets do not reach.",
			ports:  same, input: ForwardInput{Families: both, Kernel: true, Dropped: true, Addresses: addrs("10.96.0.1", "fd00::1")}, want: `{}`, advertise: true,
		},
		"AllPortsDropped": {
			reason: "A service with all ports has no alternative, and a message says what to do.",
			ports:  all, input: ForwardInput{Families: both, Kernel: true, Dropped: true, Addresses: addrs("10.96.0.1", "fd00::1"), AppliedKnown: true, Applied: applied(v46)}, want: v46, advertise: true,
			message: messageDropped,
		},
		"SeveralAddresses": {
			reason: "Tailscaled forwards to a backend with several addresses.",
			ports:  same, input: ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.0.0.1", "10.0.0.2")}, want: `{}`, advertise: true,
		},
		"AllPortsSeveralAddresses": {
			reason: "A service with all ports cannot have a backend with several addresses.",
			ports:  all, input: ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.0.0.1", "10.0.0.2")}, want: `{}`,
			message: "All ports need a backend with one address of a family in which this pod forwards, which is IPv4 and IPv6; web has 10.0.0.1, 10.0.0.2",
		},
		"OtherPort": {
			reason: "The kernel does not change ports.",
			ports:  []v1alpha1.AttachmentPort{port(80, 8080, "web")},
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1")}, want: `{}`, advertise: true,
		},
		"OtherHost": {
			reason: "The kernel forwards all of a service to one host.",
			ports:  []v1alpha1.AttachmentPort{port(80, 80, "web"), port(443, 443, "other")},
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1")}, want: `{}`, advertise: true,
		},
		"TLS": {
			reason: "The kernel does not terminate TLS.",
			ports:  []v1alpha1.AttachmentPort{{Port: 443, Backend: &v1alpha1.AttachmentBackend{Host: "web", Port: 443}, TLS: &v1alpha1.AttachmentTLS{}}},
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1")}, want: `{}`, advertise: true,
		},
		"HTTP": {
			reason: "The kernel adds no headers.",
			ports:  []v1alpha1.AttachmentPort{{Port: 80, Backend: &v1alpha1.AttachmentBackend{Host: "web", Port: 80}, Protocol: v1alpha1.AttachmentProtocolHTTP}},
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1")}, want: `{}`, advertise: true,
		},
		"ProxyProtocol": {
			reason: "The kernel adds no header of the PROXY protocol.",
			ports:  []v1alpha1.AttachmentPort{{Port: 80, Backend: &v1alpha1.AttachmentBackend{Host: "web", Port: 80}, ProxyProtocol: 2}},
			input:  ForwardInput{Families: both, Kernel: true, Addresses: addrs("10.96.0.1")}, want: `{}`, advertise: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.input.Attachments = []v1alpha1.ServiceAttachment{{Spec: v1alpha1.ServiceAttachmentSpec{
				Direction: v1alpha1.DirectionIngress, ServiceName: "svc:web",
				Addresses: []string{"100.100.0.1", "fd7a:115c:a1e0::1"}, Ports: tc.ports,
			}}}
			services, f := Forward([]Service{{Name: "svc:web", Advertise: true}}, tc.input)
			got, err := IngressConfig(f)
			if err != nil {
				t.Fatalf("IngressConfig(...): %v", err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("\n%s\nIngressConfig(Forward(...)): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(Service{Name: "svc:web", Advertise: tc.advertise, Message: tc.message}, services[0]); diff != "" {
				t.Errorf("\n%s\nForward(...): -want, +got:\n%s", tc.reason, diff)
			}
			back, err := ForwardsIn(got)
			if err != nil || !back.Equal(f) {
				t.Errorf("\n%s\nForwardsIn(...): %v, %v, want what was encoded", tc.reason, back, err)
			}
		})
	}
}

func TestWithTun(t *testing.T) {
	f := Forwards{"svc:web": {}}
	serve := `{"Services":{"svc:db":{"TCP":{"5432":{"TCPForward":"db:5432"}}},"svc:web":{"TCP":{"80":{"TCPForward":"web:80"}}}}}`
	got, err := WithTun([]byte(serve), f)
	if err != nil {
		t.Fatalf("WithTun(...): %v", err)
	}
	want := `{"Services":{"svc:db":{"TCP":{"5432":{"TCPForward":"db:5432"}}},"svc:web":{"Tun":true}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("A service that the kernel forwards must be marked, and must have no handlers: -want, +got:\n%s", diff)
	}
}
