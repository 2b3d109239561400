// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// served returns a service with an address and one host, which is approved or not.
func served(approval string) *tailnetv1alpha1.VIPService {
	v := &tailnetv1alpha1.VIPService{}
	v.Spec.ProviderConfigReference = compose.ProviderConfigRef("corp")
	v.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
	o := &v.Status.AtProvider
	o.Addresses, o.DNSName = []string{"100.100.0.1"}, "web.example.ts.net"
	o.Hosts = []tailnetv1alpha1.ServiceHost{{Name: "proxy", Endpoints: "proxies", Online: true, Configured: true, Approval: approval}}
	return v
}

func TestAll(t *testing.T) {
	type want map[xpv2.ConditionType]xpv2.ConditionReason
	routed := served("approved:admin")
	routed.SetConditions(xpv2.Condition{Type: meta.TypeRouted, Status: corev1.ConditionFalse, Reason: meta.ReasonNoHost, Message: "None"})
	refused := served("approved:admin")
	refused.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionFalse, Reason: meta.ReasonForeignService, Message: "It is of another"})
	cases := map[string]struct {
		reason string
		facts  func(*Facts)
		want   want
	}{
		"Serving": {
			reason: "Every condition of a service that a machine hosts is true.",
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreated,
				meta.TypeAdvertised: meta.ReasonHostsAdvertising, meta.TypeApproved: meta.ReasonHostsApproved},
		},
		"First": {
			reason: "A service without an address waits for it.",
			facts:  func(f *Facts) { f.VIPService = nil },
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreating,
				meta.TypeAdvertised: meta.ReasonNoHost, meta.TypeApproved: meta.ReasonNoHost},
		},
		"Pending": {
			reason: "A host that is not approved has no clients.",
			facts:  func(f *Facts) { f.VIPService = served("not-approved") },
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreated,
				meta.TypeAdvertised: meta.ReasonApprovalPending, meta.TypeApproved: meta.ReasonApprovalPending},
		},
		"Invalid": {
			reason: "An invalid spec has its reason where it matters.",
			facts: func(f *Facts) {
				f.PortsErr = &ports.SpecError{Reason: meta.ReasonInvalidBackends, Message: "It has no backend"}
			},
			want: want{meta.TypeAccepted: meta.ReasonInvalidBackends, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreated,
				meta.TypeAdvertised: meta.ReasonInvalidBackends, meta.TypeApproved: meta.ReasonHostsApproved},
		},
		"Selector": {
			reason: "An invalid selector changes nothing that serves.",
			facts:  func(f *Facts) { f.Selection.Selected, f.Selection.Err = nil, errors.New("It is invalid") },
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonInvalidSelector, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreated,
				meta.TypeAdvertised: meta.ReasonHostsAdvertising, meta.TypeApproved: meta.ReasonHostsApproved},
		},
		"Tailnet": {
			reason: "A tailnet that may not be used has its reason.",
			facts: func(f *Facts) {
				f.Verdict, f.VIPService = compose.TailnetVerdict{Reason: meta.ReasonNamespaceNotAllowed, Message: "It is not allowed"}, nil
			},
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonNamespaceNotAllowed, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreating,
				meta.TypeAdvertised: meta.ReasonNoHost, meta.TypeApproved: meta.ReasonNoHost},
		},
		"Foreign": {
			reason: "The provider's refusal has its reason.",
			facts:  func(f *Facts) { f.VIPService = refused },
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonForeignService,
				meta.TypeAdvertised: meta.ReasonHostsAdvertising, meta.TypeApproved: meta.ReasonHostsApproved},
		},
		"Routed": {
			reason: "Conditions that the provider sets only at times exist then.",
			facts:  func(f *Facts) { f.VIPService = routed },
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreated,
				meta.TypeAdvertised: meta.ReasonHostsAdvertising, meta.TypeApproved: meta.ReasonHostsApproved, meta.TypeRouted: meta.ReasonNoHost},
		},
		"Features": {
			reason: "Conditions of features exist if the spec uses them.",
			facts: func(f *Facts) {
				f.Selection.Spec.Sharing, f.Selection.Spec.ServiceDiscovery = gatewayv1alpha1.SharingShared, &gatewayv1alpha1.ServiceDiscovery{}
				f.VIPService = nil
			},
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreating,
				meta.TypeAdvertised: meta.ReasonNoHost, meta.TypeApproved: meta.ReasonNoHost, meta.TypeConflict: compose.ReasonWaiting, meta.TypeDiscoverySuccessful: compose.ReasonWaiting},
		},
		"Ports": {
			reason: "Endpoints that do not allow a port are named.",
			facts: func(f *Facts) {
				f.Selection.Selected[0].Spec.IngressPorts, f.VIPService = &tailnetv1alpha1.ProxySetPorts{Allowed: []int32{443}}, nil
			},
			want: want{meta.TypeAccepted: meta.ReasonAccepted, meta.TypeEndpointsSelected: meta.ReasonEndpointsSelected, meta.TypeVIPServiceReady: meta.ReasonVIPServiceCreating,
				meta.TypeAdvertised: meta.ReasonPortsNotAllowed, meta.TypeApproved: meta.ReasonNoHost, meta.TypePortsAllowed: meta.ReasonPortsNotAllowed},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tailnetv1alpha1.ProxySet{}
			p.Spec.Endpoints, p.Spec.Tailnet = "proxies", "corp"
			p.Spec.Sets = []tailnetv1alpha1.ProxySetMember{{Direction: tailnetv1alpha1.DirectionIngress, Replicas: 1}}
			f := Facts{
				ServiceName: "svc:web", VIPService: served("approved:admin"), Verdict: compose.TailnetVerdict{Accepted: true}, Machines: 1,
			}
			f.Tailnet, f.Selection.Selected = "corp", []tailnetv1alpha1.ProxySet{p}
			f.Selection.Owner = compose.Owner{Namespace: "shop", Name: "web"}
			f.Selection.Spec.VIPService.Ports = []gatewayv1alpha1.ServicePort{"tcp:80"}
			if tc.facts != nil {
				tc.facts(&f)
			}
			f.Presence = presence.New(f.VIPService, f.Tailnet, f.Selection.Spec.Sharing == gatewayv1alpha1.SharingShared)
			f.Succession = succession.Succeed(f.Facts)
			got := want{}
			for _, c := range All(f) {
				got[c.Type] = c.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nAll(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
