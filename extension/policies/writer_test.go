// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

// TestSeeks shows that Discoveries are written only by who is to, and that the status
// tells it else.
func TestSeeks(t *testing.T) {
	cases := map[string]struct {
		reason  string
		seeks   bool
		written int
		message string
	}{
		"Seeks": {reason: "A Discovery should look for the devices.", seeks: true, written: 1},
		"Not":   {reason: "None should, and the status should tell it.", message: "Devices are not looked for: the extension is installed without discoveries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := index.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			object := &gatewayv1alpha1.TailscaleRoutePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "a"}}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(object).WithStatusSubresource(object).Build()
			p := policy("a", "web", denies("x", index.PolicyMatch{Devices: &index.DeviceQuery{Tailnet: "corp", Tags: []string{"tag:ci"}}}))
			p.Devices = map[string]int32{"x": 0}
			w := NewWriter(nil, kube, kube, tc.seeks, logging.NewNopLogger())
			if wait := w.write(t.Context(), index.NewSnapshot(index.Contents{Policies: []*index.RoutePolicy{p}})); wait != 0 {
				t.Errorf("\n%s\nwrite(...) is not done", tc.reason)
			}
			l := &tailnetv1alpha1.DiscoveryList{}
			if err := kube.List(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if len(object.Status.Rules) != 1 || len(l.Items) != tc.written {
				t.Fatalf("\n%s\nwant a rule and %d Discoveries, got %v and %v", tc.reason, tc.written, object.Status.Rules, l.Items)
			}
			if diff := cmp.Diff(tc.message, object.Status.Rules[0].Message); diff != "" {
				t.Errorf("\n%s\nwhat is told of the rule: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
