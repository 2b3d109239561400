// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package placeholder

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
)

const (
	// section is the listener in the parentRef of a placeholder route. No Gateway has it.
	section gwapiv1.SectionName = "tailscale-placeholder.invalid"

	// hostname receives no requests (RFC 2606), even if a listener of that name exists.
	hostname gwapiv1.Hostname = "tailscale-placeholder.invalid"

	// altered is the state of a placeholder route that another client has changed.
	altered = "altered"

	// description is the description annotation of a placeholder route.
	description = "Placeholder route: it attaches to no listener and serves no traffic. It makes Envoy Gateway load the backends of TCPRoutes, UDPRoutes and TLSRoutes of this namespace, so that the status of these routes is correct. The extension of tailscale-gateway manages it."
)

type writer struct{ client client.Client }

// Write implements reconcile.Writer.
func (w *writer) Write(ctx context.Context, n types.NamespacedName, state string, observed *reconcile.Observed) (*reconcile.Observed, error) {
	u, err := build(n, state)
	if err != nil {
		return nil, err
	}
	if err := reconcile.Apply(ctx, w.client, u, observed); err != nil {
		return nil, errors.Wrapf(err, "cannot write HTTPRoute %s", n)
	}
	return &reconcile.Observed{State: state, Object: u}, nil
}

// Delete implements reconcile.Writer.
func (w *writer) Delete(ctx context.Context, n types.NamespacedName, observed *reconcile.Observed) error {
	return errors.Wrapf(reconcile.Delete(ctx, w.client, observed), "cannot delete HTTPRoute %s", n)
}

// build returns the placeholder route for a state.
func build(n types.NamespacedName, state string) (*unstructured.Unstructured, error) {
	g, references, err := decode(state)
	if err != nil {
		return nil, err
	}
	var rules []any
	for chunk := range slices.Chunk(references, maxBackends) {
		var backends []any
		for _, o := range chunk {
			kind, name, _ := strings.Cut(string(o), "/")
			backends = append(backends, map[string]any{"group": v1alpha1.Group, "kind": kind, "name": name})
		}
		rules = append(rules, map[string]any{"backendRefs": backends})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{"namespace": g.Namespace, "name": g.Name, "sectionName": string(section)}},
		"hostnames":  []any{string(hostname)},
		"rules":      rules,
	}}}
	u.SetAPIVersion(gwapiv1.GroupVersion.String())
	u.SetKind("HTTPRoute")
	u.SetNamespace(n.Namespace)
	u.SetName(n.Name)
	u.SetLabels(map[string]string{ir.ManagedByLabel: ir.ManagedBy, ir.PlaceholderLabel: labelOf(g)})
	u.SetAnnotations(map[string]string{"gateway.tailscale.com/description": description})
	return u, nil
}
