// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// A writer writes the objects of TailscaleGateways. Its client also reads the objects that a write concerns
// from the API server.
type writer struct {
	client client.Client
}

// writeReport writes the report if it has changed, except for the hooks, which each replica
// adds.
func (wr *writer) writeReport(ctx context.Context, v *view, spec tailnetv1alpha1.GatewayReportSpec) error {
	if v.report != nil {
		previous := v.report.Spec
		previous.Extension.Hooks = nil
		if equality.Semantic.DeepEqual(previous, spec) {
			return nil
		}
	}
	u, err := unstructuredOf(&tailnetv1alpha1.GatewayReport{
		TypeMeta: metav1.TypeMeta{APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(), Kind: tailnetv1alpha1.GatewayReportKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Object.Namespace, Name: names.GatewayReport(v.Object.Name),
			OwnerReferences: []metav1.OwnerReference{routes.OwnerReference(v.Object)},
		},
		Spec: spec,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = wr.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(ir.ManagedBy), client.ForceOwnership)
	return errors.Wrap(err, "cannot apply GatewayReport")
}

// removeReport deletes the report of a TailscaleGateway that needs none.
func (wr *writer) removeReport(ctx context.Context, v *view) error {
	if v.report == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Wrap(client.IgnoreNotFound(wr.client.Delete(ctx, v.report)), "cannot delete GatewayReport")
}

// unstructuredOf converts an object without its status.
func unstructuredOf(o client.Object) (*unstructured.Unstructured, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot convert %T", o)
	}
	delete(raw, "status")
	return &unstructured.Unstructured{Object: raw}, nil
}
