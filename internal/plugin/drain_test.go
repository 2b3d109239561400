// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// tailnetObject returns a TailscaleTailnet.
func tailnetObject() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(tailnetKind)
	o.SetName("example")
	return o
}

func TestDrain(t *testing.T) {
	service := func(name string, sharing v1alpha1.Sharing, status corev1.ConditionStatus, message string) *v1alpha1.VIPService {
		v := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{meta.LabelServices: name}}}
		v.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"}
		v.Spec.ForProvider.Sharing, v.Spec.ForProvider.Drain = sharing, sharing.IsShared()
		if status != "" {
			v.SetConditions(xpv2.Condition{Type: meta.TypeDrained, Status: status, Reason: meta.ReasonHostsWithdrawn, Message: message})
		}
		return v
	}
	web := service("web", v1alpha1.SharingClusterSet, corev1.ConditionTrue, "")
	cases := map[string]struct {
		reason  string
		args    []string
		objects []client.Object
		code    int
		out     string
		drain   bool
	}{
		"Drained": {
			reason: "The command ends once other clusters serve.", objects: []client.Object{tailnetObject(), web},
			code: ExitNone, drain: true,
			out: "TailscaleTailnet example drains\n1 of 1 shared services are served by other clusters\n",
		},
		"Serves": {
			reason: "Services that this cluster still serves are listed, with the reason, and so are those that are not shared.", args: []string{"--timeout=0s"},
			objects: []client.Object{
				tailnetObject(), web, service("api", v1alpha1.SharingClusterSet, corev1.ConditionFalse, "no other cluster"), service("db", v1alpha1.SharingExclusive, "", ""),
			},
			code: ExitFound, drain: true,
			out: "TailscaleTailnet example drains\n1 of 2 shared services are served by other clusters\nserved here: shop/api: no other cluster\nnot shared, and unreachable when this cluster stops: shop/db\n",
		},
		"Undo": {
			reason: "The drain ends at once.", args: []string{"--undo"}, objects: []client.Object{tailnetObject(), web},
			code: ExitNone, out: "TailscaleTailnet example no longer drains\n",
		},
		"Unknown": {
			reason: "A tailnet that does not exist is an error.", args: []string{"other"}, objects: []client.Object{tailnetObject()}, code: ExitFailed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			code, out, errs := w.run(append([]string{"drain"}, tc.args...)...)
			if diff := cmp.Diff(tc.out, out); diff != "" || code != tc.code {
				t.Errorf("\n%s\ndrain: code %d, want %d, %s: -want, +got:\n%s", tc.reason, code, tc.code, errs, diff)
			}
			got := tailnetObject()
			if err := w.kube.Get(t.Context(), types.NamespacedName{Name: "example"}, got); err != nil {
				t.Fatal(err)
			}
			if drain, _, _ := unstructured.NestedBool(got.Object, "spec", "drain"); drain != tc.drain {
				t.Errorf("\n%s\nwant spec.drain %v, got %v", tc.reason, tc.drain, drain)
			}
		})
	}
}
