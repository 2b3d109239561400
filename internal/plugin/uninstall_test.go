// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestUninstall(t *testing.T) {
	owned := metav1.ObjectMeta{Namespace: "ns", Name: "web-0", Annotations: map[string]string{meta.AnnotationNodeID: "n1"}}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "MachineSet", Name: "web", UID: "1", Controller: ptr.To(true)}}
	retained := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kept"}}
	retained.Status.AtProvider.Name = "svc:\x1b[2J"
	retained.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionCreate})
	watched := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "watched"}}
	watched.Status.AtProvider.Name = "svc:watched"
	watched.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
	w := newWorld(t, &v1alpha1.Machine{ObjectMeta: owned}, retained, watched)
	code, out, errs := w.run("uninstall")
	want := `KIND         NAMESPACE   NAME    HOLDS IN THE TAILNET   AFTER DELETION
Machine      ns          web-0   n1                     removed
VIPService   ns          kept    "svc:\x1b[2J"          stays, as managementPolicies say

Before the provider is removed, run in this order, and wait for each:

  kubectl delete vipservice.tailnet.gateway.tailscale.com --namespace=ns kept watched
  kubectl delete clusterproviderconfig.tailnet.gateway.tailscale.com main
`
	if diff := cmp.Diff(want, out); diff != "" || code != ExitFound {
		t.Errorf("uninstall: code %d, %s: -want, +got:\n%s", code, errs, diff)
	}
}

func TestUninstallOutcome(t *testing.T) {
	object := metav1.ObjectMeta{Namespace: "ns", Name: "o", Annotations: map[string]string{xpmeta.AnnotationKeyExternalName: "id"}}
	orphaned := &v1alpha1.Device{ObjectMeta: object}
	orphaned.Spec.ForProvider.DeletionPolicy = v1alpha1.DeviceOrphan
	deleted := &v1alpha1.Device{ObjectMeta: object}
	deleted.Spec.ForProvider.DeletionPolicy = v1alpha1.DeviceDelete
	retained := &v1alpha1.VIPService{ObjectMeta: object}
	retained.Status.AtProvider.Name = "svc:web"
	retained.Spec.ForProvider.DeletionPolicy = v1alpha1.VIPServiceRetain
	cases := map[string]struct {
		reason string
		o      resource.Managed
		want   string
	}{
		"Webhook":  {reason: "The provider deletes what it made.", o: &v1alpha1.Webhook{ObjectMeta: object}, want: ""},
		"Contacts": {reason: "The deletion of a Contacts does nothing.", o: &v1alpha1.Contacts{ObjectMeta: object}, want: "because a tailnet must have contacts"},
		"Tailnet":  {reason: "The deletion of a Tailnet does nothing.", o: &v1alpha1.Tailnet{ObjectMeta: object}, want: "because these settings have no earlier value"},
		"DNS":      {reason: "The provider puts back what a DNS set.", o: &v1alpha1.DNS{ObjectMeta: object}, want: ""},
		"Device":   {reason: "A Device without a policy leaves its device.", o: &v1alpha1.Device{ObjectMeta: object}, want: "as deletionPolicy says"},
		"Orphaned": {reason: "So does one whose policy says so.", o: orphaned, want: "as deletionPolicy says"},
		"Deleted":  {reason: "The policy Delete deletes the device.", o: deleted, want: ""},
		"Retained": {reason: "A service that is retained keeps its address.", o: retained, want: "as deletionPolicy says"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, holds := holderOf("Kind", tc.o)
			if h.Reason != tc.want || h.Stays != (tc.want != "") || !holds {
				t.Errorf("%s\nholderOf(...): %+v, %v, want the reason %q", tc.reason, h, holds, tc.want)
			}
		})
	}
}

// TestUninstallElsewhere checks that a cluster without the provider's kinds is an error: it may be another
// cluster than the caller meant, and the tailnets may have objects of one that lost its kinds.
func TestUninstallElsewhere(t *testing.T) {
	w := newWorld(t)
	w.uninstalled = true
	code, out, errs := w.run("uninstall")
	if code != ExitFailed || out != "" {
		t.Errorf("uninstall: code %d, want %d; printed %q", code, ExitFailed, out)
	}
	for _, want := range []string{"no kind of the group tailnet.gateway.tailscale.com", "--context", "orphans"} {
		if !strings.Contains(errs, want) {
			t.Errorf("uninstall: error %q lacks %q", errs, want)
		}
	}
}

// TestUninstallKinds checks that uninstall knows every managed kind.
func TestUninstallKinds(t *testing.T) {
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	staged := map[string]bool{}
	for _, st := range stages(s) {
		for _, k := range st {
			staged[k.Kind] = true
		}
	}
	for kind := range s.KnownTypes(v1alpha1.SchemeGroupVersion) {
		o, err := s.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
		if err != nil || strings.HasSuffix(kind, "List") {
			continue
		}
		if _, managed := o.(resource.Managed); !managed {
			continue
		}
		// A Discovery only reads.
		if holding(s)[kind] == nil && kind != v1alpha1.DiscoveryKind {
			t.Errorf("holding(...) lacks the kind %s", kind)
		}
		if !staged[kind] {
			t.Errorf("stages(...) lacks the kind %s", kind)
		}
	}
}
