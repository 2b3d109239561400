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
	"github.com/tailscale-gateway/tailscale-gateway/extension/keep"
)

// mostDevices of a match are as many as a Discovery lists.
const mostDevices = 512

// discoverySpec that looks for the devices of a query.
func discoverySpec(q *ir.DeviceQuery) tailnetv1alpha1.DiscoverySpec {
	out := tailnetv1alpha1.DiscoverySpec{
		ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: &xpv2.ProviderConfigReference{
			Kind: tailnetv1alpha1.ClusterProviderConfigKind, Name: q.Tailnet,
		}},
		ForProvider: tailnetv1alpha1.DiscoveryParameters{
			Sources: []tailnetv1alpha1.DiscoverySource{tailnetv1alpha1.DiscoverDevices},
			Include: q.Hostnames, Users: q.Users, MaxResults: mostDevices,
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

// seek devices: one Discovery for each query of a policy, which goes with it.
func (w *Writer) seek(ctx context.Context, s *ir.Snapshot) error {
	wanted := map[types.NamespacedName]bool{}
	var errs []error
	for p := range s.RoutePolicies() {
		for n, q := range p.Discoveries() {
			wanted[n] = true
			errs = append(errs, errors.Wrapf(w.look(ctx, p.Name, n, q), "cannot write Discovery %s", n))
		}
	}
	there := &tailnetv1alpha1.DiscoveryList{}
	err := w.objects.List(ctx, there, client.HasLabels{ir.RoutePolicyLabel})
	if kmeta.IsNoMatchError(err) && len(wanted) == 0 {
		// Without the provider there are none.
		return nil
	}
	if err != nil {
		return errors.Join(append(errs, errors.Wrap(err, "cannot list Discoveries"))...)
	}
	for i := range there.Items {
		if d := &there.Items[i]; !wanted[client.ObjectKeyFromObject(d)] && d.DeletionTimestamp.IsZero() {
			err := w.kube.Delete(ctx, d, client.Preconditions{UID: &d.UID})
			errs = append(errs, errors.Wrapf(client.IgnoreNotFound(err), "cannot delete Discovery %s/%s", d.Namespace, d.Name))
		}
	}
	return errors.Join(errs...)
}

// look for the devices of a query, unless somebody does already.
func (w *Writer) look(ctx context.Context, policy, n types.NamespacedName, q *ir.DeviceQuery) error {
	spec := discoverySpec(q)
	is := &tailnetv1alpha1.Discovery{}
	err := w.objects.Get(ctx, n, is)
	if err == nil && equality.Semantic.DeepDerivative(spec, is.Spec) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot get it")
	}
	p := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := w.objects.Get(ctx, policy, p); err != nil {
		// One that is gone looks for nothing.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get TailscaleRoutePolicy")
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&tailnetv1alpha1.Discovery{
		TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: tailnetv1alpha1.DiscoveryKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.Namespace, Name: n.Name,
			Labels: map[string]string{keep.ManagedByLabel: keep.ManagedBy, ir.RoutePolicyLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: gatewayv1alpha1.TailscaleRoutePolicyKind, Name: p.Name, UID: p.UID,
			}},
		},
		Spec: spec,
	})
	if err != nil {
		return errors.Wrap(err, "cannot convert it")
	}
	delete(raw, "status")
	return errors.Wrap(w.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: raw}),
		client.FieldOwner(keep.ManagedBy), client.ForceOwnership), "cannot apply it")
}
