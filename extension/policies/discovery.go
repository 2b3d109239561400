// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxDevices of a match is the limit of a Discovery.
const maxDevices = 512

// discoverySpec returns the spec of a Discovery for the devices of a query.
func discoverySpec(q *ir.DeviceQuery) tailnetv1alpha1.DiscoverySpec {
	out := tailnetv1alpha1.DiscoverySpec{
		ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: &xpv2.ProviderConfigReference{
			Kind: tailnetv1alpha1.ClusterProviderConfigKind, Name: q.Tailnet,
		}},
		ForProvider: tailnetv1alpha1.DiscoveryParameters{
			Sources: []tailnetv1alpha1.DiscoverySource{tailnetv1alpha1.DiscoverDevices},
			Include: q.Hostnames, Users: q.Users, MaxResults: maxDevices,
		},
	}
	if len(q.Tags) > 0 {
		s := tailnetv1alpha1.TagSelector{Operator: tailnetv1alpha1.TagSelectorIn}
		for _, t := range q.Tags {
			s.Values = append(s.Values, tailnetv1alpha1.Tag(t))
		}
		out.ForProvider.TagSelectors = []tailnetv1alpha1.TagSelector{s}
	}
	return out
}

// writeDiscoveries writes one Discovery for each query of a policy, and deletes all others.
func (w *Writer) writeDiscoveries(ctx context.Context, s *ir.Snapshot) error {
	desired := map[types.NamespacedName]bool{}
	var errs []error
	for p := range s.Policies().All() {
		for n, q := range p.Discoveries() {
			desired[n] = true
			errs = append(errs, errors.Wrapf(w.writeDiscovery(ctx, p.Name, n, q), "cannot write Discovery %s", n))
		}
	}
	existing := &tailnetv1alpha1.DiscoveryList{}
	err := w.objects.List(ctx, existing, client.HasLabels{ir.RoutePolicyLabel})
	if kmeta.IsNoMatchError(err) && len(desired) == 0 {
		// The provider is not installed.
		return nil
	}
	if err != nil {
		return errors.Join(append(errs, errors.Wrap(err, "cannot list Discoveries"))...)
	}
	for i := range existing.Items {
		if d := &existing.Items[i]; !desired[client.ObjectKeyFromObject(d)] && d.DeletionTimestamp.IsZero() {
			err := w.kube.Delete(ctx, d, client.Preconditions{UID: &d.UID})
			errs = append(errs, errors.Wrapf(client.IgnoreNotFound(err), "cannot delete Discovery %s/%s", d.Namespace, d.Name))
		}
	}
	return errors.Join(errs...)
}

// writeDiscovery writes the Discovery of a query, unless it is up to date.
func (w *Writer) writeDiscovery(ctx context.Context, policy, n types.NamespacedName, q *ir.DeviceQuery) error {
	spec := discoverySpec(q)
	current := &tailnetv1alpha1.Discovery{}
	err := w.objects.Get(ctx, n, current)
	if err == nil && equality.Semantic.DeepDerivative(spec, current.Spec) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot get Discovery")
	}
	p := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := w.objects.Get(ctx, policy, p); err != nil {
		// A deleted policy needs no Discovery.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get TailscaleRoutePolicy")
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&tailnetv1alpha1.Discovery{
		TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: tailnetv1alpha1.DiscoveryKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.Namespace, Name: n.Name,
			Labels: map[string]string{ir.ManagedByLabel: ir.ManagedBy, ir.RoutePolicyLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: gatewayv1alpha1.TailscaleRoutePolicyKind, Name: p.Name, UID: p.UID,
			}},
		},
		Spec: spec,
	})
	if err != nil {
		return errors.Wrap(err, "cannot convert Discovery")
	}
	delete(raw, "status")
	return errors.Wrap(w.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: raw}),
		client.FieldOwner(ir.ManagedBy), client.ForceOwnership), "cannot apply Discovery")
}
