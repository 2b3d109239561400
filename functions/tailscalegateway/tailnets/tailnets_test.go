// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// newGateway returns a Gateway that serves HTTP at port 80, HTTPS at 443 and UDP at 53.
func newGateway() *front.Gateway {
	g := &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "eg"}}
	g.Spec.Listeners = []gwapiv1.Listener{
		{Name: "https", Port: 443, Protocol: gwapiv1.HTTPSProtocolType}, {Name: "http", Port: 80, Protocol: gwapiv1.HTTPProtocolType},
		{Name: "dns", Port: 53, Protocol: gwapiv1.UDPProtocolType},
	}
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "envoy"}}
	s.Spec.Ports = []corev1.ServicePort{
		{Name: "https-443", Port: 443, Protocol: corev1.ProtocolTCP}, {Name: "http-80", Port: 80, Protocol: corev1.ProtocolTCP},
		{Name: "udp-53", Port: 53, Protocol: corev1.ProtocolUDP},
	}
	return front.New(gatewayv1alpha1.GatewayRef{Namespace: "edge", Name: "eg"}, g, []corev1.Service{s}, nil, nil)
}

func TestListeners(t *testing.T) {
	cases := map[string]struct {
		reason  string
		chosen  []gatewayv1alpha1.SharedListener
		want    []Listener
		mistake string
	}{
		"All": {
			reason: "Without a choice all ports of TCP are shared, by port.",
			want:   []Listener{{Port: 80, VIPPort: 80}, {Port: 443, VIPPort: 443}},
		},
		"Chosen": {
			reason: "A listener may have another port in the tailnet.",
			chosen: []gatewayv1alpha1.SharedListener{{Name: "http", VIPPort: ptr.To[int32](8080), Identity: gatewayv1alpha1.ClientIdentityHeaders}},
			want:   []Listener{{Port: 80, VIPPort: 8080, Identity: gatewayv1alpha1.ClientIdentityHeaders}},
		},
		"Unknown": {
			reason:  "A listener that is not served does not affect the others.",
			chosen:  []gatewayv1alpha1.SharedListener{{Name: "tls"}, {Name: "http"}},
			want:    []Listener{{Port: 80, VIPPort: 80}},
			mistake: "Gateway edge/eg serves no listener \"tls\"; add it there, or correct the name",
		},
		"UDP": {
			reason:  "A Tailscale Service has no ports of UDP.",
			chosen:  []gatewayv1alpha1.SharedListener{{Name: "dns"}},
			mistake: "listener \"dns\" is of UDP, which a Tailscale Service has no port for; remove it",
		},
		"Headers": {
			reason:  "Headers need requests without TLS.",
			chosen:  []gatewayv1alpha1.SharedListener{{Name: "https", Identity: gatewayv1alpha1.ClientIdentityHeaders}},
			mistake: "listener \"https\" is of HTTPS, and identity Headers needs HTTP; set ProxyProtocol, or name another listener",
		},
		"Collision": {
			reason:  "Two listeners cannot have one port in the tailnet.",
			chosen:  []gatewayv1alpha1.SharedListener{{Name: "https"}, {Name: "http", VIPPort: ptr.To[int32](443)}},
			want:    []Listener{{Port: 443, VIPPort: 443}},
			mistake: "listener \"http\" would have port 443 of the Tailscale Service, which leads elsewhere; give it another vipPort",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := New(Facts{
				Owner: compose.Owner{Namespace: "edge", Name: "web"}, Sharing: gatewayv1alpha1.RouteSharingGateway,
				Gateway: newGateway(), Spec: []gatewayv1alpha1.GatewayTailnet{{Name: "corp", Listeners: tc.chosen}},
				Verdicts: []compose.TailnetVerdict{{Accepted: true}},
			})
			if diff := cmp.Diff(tc.want, plan.Tailnets[0].Shared); diff != "" {
				t.Errorf("\n%s\nNew(...) shared: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.mistake, plan.Tailnets[0].Mistake); diff != "" {
				t.Errorf("\n%s\nNew(...) mistake: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChildren(t *testing.T) {
	discovery := &gatewayv1alpha1.GatewayDiscovery{Patterns: []string{"*"}}
	spec := []gatewayv1alpha1.GatewayTailnet{{Name: "a", ServiceDiscovery: discovery}, {Name: "b", ServiceDiscovery: discovery}}
	// Proxies that have no device yet.
	starting := func(tailnet string) *gatewayv1alpha1.TailscaleEndpoints {
		o := &gatewayv1alpha1.TailscaleEndpoints{}
		o.Spec.Tailnet = tailnet
		return o
	}
	started := starting("a")
	started.Status.Devices = []gatewayv1alpha1.DeviceStatus{{Online: true}, {Online: true}}
	// Proxies that have all their devices.
	settled := func(tailnet string) *gatewayv1alpha1.TailscaleEndpoints {
		o := starting(tailnet)
		o.Status.Devices = started.Status.Devices
		o.Status.SetConditions(xpv2.Available())
		return o
	}
	type want struct {
		Children            []string
		Incomplete, Requeue bool
	}
	cases := map[string]struct {
		reason   string
		sharing  gatewayv1alpha1.RouteSharing
		rejected bool
		observed map[string]*gatewayv1alpha1.TailscaleEndpoints
		want     want
	}{
		"Start": {
			reason: "No more proxies start at once than Crossplane's circuit breaker allows, and ingress comes first.", sharing: gatewayv1alpha1.RouteSharingGateway,
			want: want{Children: []string{"ingress-a", "ingress-b"}, Incomplete: true, Requeue: true},
		},
		"Starting": {
			reason: "Others wait for those that start.", sharing: gatewayv1alpha1.RouteSharingGateway,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": starting("a"), "ingress-b": starting("b")},
			want:     want{Children: []string{"ingress-a", "ingress-b"}, Incomplete: true, Requeue: true},
		},
		"Started": {
			reason: "One that has its devices makes room.", sharing: gatewayv1alpha1.RouteSharingGateway,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": started, "ingress-b": starting("b")},
			want:     want{Children: []string{"ingress-a", "ingress-b", "egress-a"}, Incomplete: true, Requeue: true},
		},
		"EgressAlone": {
			reason: "Without ingress there are only proxies for discovered services.", sharing: gatewayv1alpha1.RouteSharingNone,
			want: want{Children: []string{"egress-a", "egress-b"}, Incomplete: true, Requeue: true},
		},
		"Moving": {
			reason: "Proxies cannot change their tailnet, and are deleted first.", sharing: gatewayv1alpha1.RouteSharingGateway,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": starting("other"), "ingress-b": started, "egress-a": started, "egress-b": started},
			want:     want{Children: []string{"egress-a"}, Incomplete: true, Requeue: true},
		},
		"Refused": {
			reason: "A tailnet that may not be used gets no proxies, and existing ones stay.", sharing: gatewayv1alpha1.RouteSharingGateway, rejected: true,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": started},
			want:     want{Children: []string{"ingress-a"}, Incomplete: true, Requeue: true},
		},
		"Settled": {
			reason: "Nothing is missing once all proxies are ready.", sharing: gatewayv1alpha1.RouteSharingGateway,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": settled("a"), "ingress-b": settled("b"), "egress-a": settled("a"), "egress-b": settled("b")},
			want:     want{Children: []string{"ingress-a", "ingress-b", "egress-a", "egress-b"}},
		},
		"MovingAlone": {
			reason: "Proxies that are deleted are missing, and nothing else is to come that the circuit breaker may drop.", sharing: gatewayv1alpha1.RouteSharingGateway,
			observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{"ingress-a": settled("a"), "ingress-b": settled("other"), "egress-a": settled("a"), "egress-b": settled("b")},
			want:     want{Children: []string{"ingress-a", "egress-a", "egress-b"}, Incomplete: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := compose.TailnetVerdict{Accepted: !tc.rejected}
			children := New(Facts{
				Owner: compose.Owner{Namespace: "edge", Name: "web"}, Sharing: tc.sharing, Spec: spec, Gateway: newGateway(),
				Verdicts: []compose.TailnetVerdict{v, v}, Observed: tc.observed,
			}).Children()
			got := want{Incomplete: children.Incomplete, Requeue: children.Requeue}
			for _, c := range children.Wanted {
				got.Children = append(got.Children, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nChildren(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
