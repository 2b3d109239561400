// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestIngressOf(t *testing.T) {
	status := func(name string, addresses ...string) func(*gatewayv1alpha1.TailscaleServices) {
		return func(o *gatewayv1alpha1.TailscaleServices) {
			o.Status.VIPService = &gatewayv1alpha1.VIPServiceStatus{DNSName: name, Addresses: addresses}
		}
	}
	const name = "shop-web.example.ts.net"
	cases := map[string]struct {
		reason string
		change func(*gatewayv1alpha1.TailscaleServices)
		want   []corev1.LoadBalancerIngress
	}{
		"Both":       {reason: "The name comes first.", change: status(name, "100.100.1.2", "fd7a:115c:a1e0::1"), want: addresses("shop-web")},
		"None":       {reason: "A service has no status at first.", change: func(o *gatewayv1alpha1.TailscaleServices) { o.Status.VIPService = nil }},
		"NoName":     {reason: "A service whose name is not known is not complete.", change: status("", "100.100.1.2")},
		"NoAddress":  {reason: "Nor is one without an address.", change: status(name)},
		"OtherName":  {reason: "A name that the spec does not lead to is not the service's.", change: status("bank.example.ts.net", "100.100.1.2")},
		"NoDomain":   {reason: "A name has a domain.", change: status("shop-web", "100.100.1.2")},
		"BadName":    {reason: "The API server would refuse what is no name.", change: status("shop-web.a_b", "100.100.1.2")},
		"Elsewhere":  {reason: "An address that is not Tailscale's would let its traffic be taken over.", change: status(name, "10.96.0.1", "8.8.8.8", "2001:db8::1", "not an address")},
		"SomeOfThem": {reason: "The others count.", change: status(name, "10.96.0.1", "100.100.1.2"), want: []corev1.LoadBalancerIngress{{Hostname: name}, {IP: "100.100.1.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ingressOf(published(service(), tc.change))); diff != "" {
				t.Errorf("\n%s\ningressOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProblemOf(t *testing.T) {
	endpoints := func(status corev1.ConditionStatus) *gatewayv1alpha1.TailscaleEndpoints {
		o := &gatewayv1alpha1.TailscaleEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "published"}}
		o.Status.SetConditions(xpv2.Condition{Type: meta.TypeTailnetAccepted, Status: status, Reason: meta.ReasonAmbiguous, Message: "Several"})
		return o
	}
	cases := map[string]struct {
		reason    string
		own       *gatewayv1alpha1.TailscaleServices
		endpoints *gatewayv1alpha1.TailscaleEndpoints
		want      *problem
	}{
		"None":      {reason: "An object in order has none.", own: published(service()), endpoints: endpoints(corev1.ConditionTrue)},
		"Unknown":   {reason: "A condition that is not known is none.", own: published(service(), condition(meta.TypeAccepted, corev1.ConditionUnknown, "X", "")), endpoints: endpoints(corev1.ConditionUnknown)},
		"Transient": {reason: "A start needs no person.", own: published(service(), condition(meta.TypeAdvertised, corev1.ConditionFalse, meta.ReasonNoHost, "Waiting"))},
		"Tailnet": {
			reason: "Without proxies, nothing else can work.",
			own:    published(service(), condition(meta.TypeAccepted, corev1.ConditionFalse, meta.ReasonInvalidBackends, "No port")), endpoints: endpoints(corev1.ConditionFalse),
			want: &problem{reason: "Ambiguous", message: `TailscaleEndpoints "published": Several`},
		},
		"First": {
			reason: "The first one comes before what may follow from it.",
			own:    published(service(), condition(meta.TypeAdvertised, corev1.ConditionFalse, meta.ReasonNoHealthyBackend, "No backend"), condition(meta.TypeAccepted, corev1.ConditionFalse, meta.ReasonInvalidBackends, "No port")),
			want:   &problem{reason: "InvalidBackends", message: `TailscaleServices "web": No port`},
		},
		"Long": {
			reason: "Any user with Crossplane's role can write a condition.",
			own:    published(service(), condition(meta.TypeAccepted, corev1.ConditionFalse, xpv2.ConditionReason(strings.Repeat("R", 200)), strings.Repeat("m", 2000)+"\n")),
			want:   &problem{reason: event.Reason(strings.Repeat("R", maxReason) + "..."), message: `TailscaleServices "web": ` + strings.Repeat("m", maxMessage) + "..."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problemOf(tc.own, tc.endpoints), cmp.AllowUnexported(problem{})); diff != "" {
				t.Errorf("\n%s\nproblemOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
