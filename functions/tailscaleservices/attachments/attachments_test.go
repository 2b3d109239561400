// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

func TestAttach(t *testing.T) {
	set := func(endpoints, tailnet string, directions ...tailnetv1alpha1.Direction) tailnetv1alpha1.ProxySet {
		p := tailnetv1alpha1.ProxySet{}
		p.Spec.Endpoints, p.Spec.Tailnet = endpoints, tailnet
		for _, d := range directions {
			p.Spec.Sets = append(p.Spec.Sets, tailnetv1alpha1.ProxySetMember{Direction: d, Replicas: 1})
		}
		return p
	}
	ingress, egress := tailnetv1alpha1.DirectionIngress, tailnetv1alpha1.DirectionEgress
	service := &tailnetv1alpha1.VIPService{}
	service.Status.AtProvider.Addresses = []string{"100.100.0.1"}
	shared := service.DeepCopy()
	shared.Status.AtProvider.OwnServiceName, shared.Status.AtProvider.OwnAddresses = "svc:web-one", []string{"100.100.0.2"}
	shared.Status.AtProvider.Consumers = []tailnetv1alpha1.ServiceConsumer{
		{ClusterID: "one", ServiceName: "svc:web-one", Addresses: []string{"100.100.0.2"}},
		{ClusterID: "two", ServiceName: "svc:web-two", Addresses: []string{"100.100.0.3"}},
	}
	port := []ports.Assignment{{Port: 80, Backend: gatewayv1alpha1.Backend{Kind: gatewayv1alpha1.BackendKindService, Name: "web", Port: 8080}}}
	gateway := []ports.Assignment{{Port: 80, Backend: gatewayv1alpha1.Backend{Kind: gatewayv1alpha1.BackendKindGateway, Name: "edge"}}}
	existing := &tailnetv1alpha1.ServiceAttachment{}
	existing.Spec.Endpoints, existing.Spec.Direction = "a", ingress
	existing.Spec.Ports = []tailnetv1alpha1.AttachmentPort{{Port: 80}}

	cases := map[string]struct {
		reason   string
		selected []tailnetv1alpha1.ProxySet
		staying  []tailnetv1alpha1.ProxySet
		existing map[string]*tailnetv1alpha1.ServiceAttachment
		service  *tailnetv1alpha1.VIPService
		sharing  bool
		ports    []ports.Assignment
		portsErr *ports.SpecError
		mayMake  bool
		want     []string
	}{
		"First": {
			reason:   "An attachment is created together with the service.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress)}, ports: port, mayMake: true,
			want: []string{"attachment-a"},
		},
		"NotYet": {
			reason:   "There is none for a service that may not be created.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress)}, ports: port,
		},
		"Egress": {
			reason:   "Egress proxies host nothing.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", egress)}, ports: port, service: service,
		},
		"Staying": {
			reason:   "Endpoints that stay serve as well.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress)}, staying: []tailnetv1alpha1.ProxySet{set("b", "corp", ingress)}, ports: port, service: service,
			want: []string{"attachment-a", "attachment-b"},
		},
		"Shared": {
			reason:   "A shared service has this cluster's own beside it, and egress proxies reach the other clusters.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress, egress)}, ports: port, service: shared, sharing: true,
			want: []string{"attachment-a", "own-a", "remote-web-a-remote-two"},
		},
		"SharedGateway": {
			reason:   "Other clusters do not take over at a Gateway's port: requests could loop.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress, egress)}, ports: gateway, service: shared, sharing: true,
			want: []string{"attachment-a"},
		},
		"Invalid": {
			reason:   "An invalid spec adds none, and existing ones stay.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress), set("b", "corp", ingress)}, portsErr: &ports.SpecError{}, service: service,
			existing: map[string]*tailnetv1alpha1.ServiceAttachment{"attachment-a": existing},
			want:     []string{"attachment-a"},
		},
		"Tailnets": {
			reason:   "So do they while endpoints of several tailnets are selected.",
			selected: []tailnetv1alpha1.ProxySet{set("a", "corp", ingress), set("b", "lab", ingress)}, ports: port, service: service,
			existing: map[string]*tailnetv1alpha1.ServiceAttachment{"attachment-a": existing},
			want:     []string{"attachment-a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := selection.Selection{
				Facts:    selection.Facts{Owner: compose.Owner{Namespace: "shop", Name: "web"}, Sets: slices.Concat(tc.selected, tc.staying), Attachments: tc.existing},
				Selected: tc.selected,
			}
			s.Spec.VIPService.Ports = []gatewayv1alpha1.ServicePort{"tcp:80"}
			p := presence.New(tc.service, "corp", tc.sharing)
			got := Attach(Facts{
				ServiceName: "svc:web",
				Succession:  succession.Succession{Facts: succession.Facts{Selection: s, Presence: p, Tailnet: "corp"}, Staying: tc.staying},
				Ports:       tc.ports, PortsErr: tc.portsErr, MayMake: tc.mayMake,
			})
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("\n%s\nAttach(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKeepPorts verifies that proxies serve a port until the tailnet has removed it.
func TestKeepPorts(t *testing.T) {
	attachment := func(ports ...int32) *tailnetv1alpha1.ServiceAttachment {
		a := &tailnetv1alpha1.ServiceAttachment{}
		a.Spec.ServiceName = "svc:web"
		for _, p := range ports {
			a.Spec.Ports = append(a.Spec.Ports, tailnetv1alpha1.AttachmentPort{Port: p})
		}
		return a
	}
	cases := map[string]struct {
		reason   string
		wanted   *tailnetv1alpha1.ServiceAttachment
		observed *tailnetv1alpha1.ServiceAttachment
		tailnet  []string
		want     []int32
	}{
		"First":   {reason: "A new attachment has its ports.", wanted: attachment(80), want: []int32{80}},
		"Removed": {reason: "A removed port stays while the tailnet has it.", wanted: attachment(80), observed: attachment(80, 443), tailnet: []string{"tcp:80", "tcp:443"}, want: []int32{80, 443}},
		"Gone":    {reason: "It is removed then.", wanted: attachment(80), observed: attachment(80, 443), tailnet: []string{"tcp:80"}, want: []int32{80}},
		"All":     {reason: "Between all ports and a list there is no intermediate step.", wanted: attachment(80), observed: attachment(rules.PortAll), tailnet: []string{string(tailnetv1alpha1.ServicePortAll)}, want: []int32{rules.PortAll}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			keepPorts(tc.wanted, tc.observed, tc.tailnet)
			var got []int32
			for _, p := range tc.wanted.Spec.Ports {
				got = append(got, p.Port)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nkeepPorts(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPortsForTailnet(t *testing.T) {
	serving := &tailnetv1alpha1.ServiceAttachment{}
	serving.Spec.Addresses, serving.Spec.Ports = []string{"100.100.0.1"}, []tailnetv1alpha1.AttachmentPort{{Port: 80}}
	existing := map[string]*tailnetv1alpha1.ServiceAttachment{selection.PrefixAttachment + "a": serving}
	cases := map[string]struct {
		reason           string
		wanted, previous []tailnetv1alpha1.ServicePort
		want             []tailnetv1alpha1.ServicePort
	}{
		"Served":   {reason: "A port that proxies serve is for the tailnet.", wanted: []tailnetv1alpha1.ServicePort{"tcp:80"}, want: []tailnetv1alpha1.ServicePort{"tcp:80"}},
		"Added":    {reason: "A new port waits until proxies serve it.", wanted: []tailnetv1alpha1.ServicePort{"tcp:80", "tcp:443"}, previous: []tailnetv1alpha1.ServicePort{"tcp:80"}, want: []tailnetv1alpha1.ServicePort{"tcp:80"}},
		"Replaced": {reason: "The tailnet keeps its ports while proxies serve no other.", wanted: []tailnetv1alpha1.ServicePort{"tcp:443"}, previous: []tailnetv1alpha1.ServicePort{"tcp:80"}, want: []tailnetv1alpha1.ServicePort{"tcp:80"}},
		"All":      {reason: "All ports replace a list at once.", wanted: []tailnetv1alpha1.ServicePort{tailnetv1alpha1.ServicePortAll}, previous: []tailnetv1alpha1.ServicePort{"tcp:80"}, want: []tailnetv1alpha1.ServicePort{tailnetv1alpha1.ServicePortAll}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := PortsForTailnet(existing, tc.wanted, tc.previous, selection.PrefixAttachment)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPortsForTailnet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
