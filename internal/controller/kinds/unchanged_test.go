// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestUnchangedStatus checks which updates of a status are sent.
func TestUnchangedStatus(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(v *v1alpha1.VIPService)
		want   int
	}{
		"Same":      {reason: "An object at rest writes nothing.", change: func(*v1alpha1.VIPService) {}},
		"Reset":     {reason: "The same conditions, set again, are no change.", change: func(v *v1alpha1.VIPService) { v.SetConditions(xpv2.Available()) }},
		"Empty":     {reason: "An empty list is the same as none.", change: func(v *v1alpha1.VIPService) { v.Status.AtProvider.Hosts = []v1alpha1.ServiceHost{} }},
		"Condition": {reason: "Another condition is written.", change: func(v *v1alpha1.VIPService) { v.SetConditions(xpv2.Unavailable()) }, want: 1},
		"Value":     {reason: "Another observation is written.", change: func(v *v1alpha1.VIPService) { v.Status.AtProvider.Addresses = []string{"100.96.0.1"} }, want: 1},
		"Version":   {reason: "Nothing is known about another version of the object.", change: func(v *v1alpha1.VIPService) { v.SetResourceVersion("998") }, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			v := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			v.SetConditions(xpv2.Available())
			requests := 0
			kube := CleanStatuses(fake.NewClientBuilder().WithScheme(s).WithObjects(v).WithStatusSubresource(v).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
					requests++
					return nil
				},
			}).Build())
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
				t.Fatal(err)
			}
			tc.change(v)
			if err := kube.Status().Update(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if requests != tc.want {
				t.Errorf("\n%s\nUpdate(...): sent %d requests, want %d", tc.reason, requests, tc.want)
			}
		})
	}
}
