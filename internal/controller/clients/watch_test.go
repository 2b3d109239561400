// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestUnsynced(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	machine := func(name string, c ...xpv2.Condition) *v1alpha1.Machine {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		m.SetConditions(c...)
		return m
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(
		machine("fine", xpv2.ReconcileSuccess()),
		machine("failing", xpv2.ReconcileError(errors.New("boom"))),
		machine("new"),
	).Build()
	got := unsynced(kube, func() resource.ManagedList { return &v1alpha1.MachineList{} })(t.Context(), nil)
	want := []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: "default", Name: "failing"}},
		{NamespacedName: types.NamespacedName{Namespace: "default", Name: "new"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unsynced(...): -want, +got:\n%s", diff)
	}
}
