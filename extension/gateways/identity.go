// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// maxUnverified limits the listeners in a report.
const maxUnverified = 64

// readGrants reads the ReferenceGrants, which permit namespaces to share the Gateway, and
// policies to protect routes of other namespaces.
func (c *Controller) readGrants(ctx context.Context, v *view) error {
	if !c.has(kindReferenceGrant) {
		return nil
	}
	l := &gwapiv1beta1.ReferenceGrantList{}
	if err := c.list(ctx, l); err != nil {
		return errors.Wrap(err, "cannot list ReferenceGrants")
	}
	v.grants = refgrant.Grants{}
	for i := range l.Items {
		v.grants[client.ObjectKeyFromObject(&l.Items[i])] = &l.Items[i].Spec
	}
	return nil
}

// unverifiedListeners returns the listeners, sorted, whose identity headers Envoy does not
// verify, because the TailscaleGateway is not permitted to configure the Gateway.
func unverifiedListeners(inputs input) []string {
	if inputs.granted() {
		return nil
	}
	var out []string
	for _, t := range inputs.object.Spec.Tailnets {
		for _, l := range t.Listeners {
			if l.Identity == gatewayv1alpha1.ClientIdentityHeaders {
				out = append(out, l.Name)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxUnverified)]
}
