// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package anchor

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
	"github.com/tailscale-gateway/tailscale-gateway/extension/keep"
)

const (
	// section is the listener that an anchor attaches to, which there is none of.
	section gwapiv1.SectionName = "tailscale-anchor.invalid"

	// hostname that nobody asks for (RFC 2606), should there be one.
	hostname gwapiv1.Hostname = "tailscale-anchor.invalid"

	// altered is the state of an anchor that somebody has changed.
	altered = "altered"

	// why is what people read on an anchor.
	why = "This route serves nothing and attaches to no listener. By it Envoy Gateway knows the backends of TCPRoutes, UDPRoutes and TLSRoutes of this namespace, and their status is true. The extension of tailscale-gateway keeps it."
)

type writer struct{ client client.Client }

// Write implements keep.Writer.
func (w *writer) Write(ctx context.Context, n types.NamespacedName, want string, seen *keep.Seen) (*keep.Seen, error) {
	u, err := build(n, want)
	if err != nil {
		return nil, err
	}
	if err := keep.Apply(ctx, w.client, u, seen); err != nil {
		return nil, errors.Wrapf(err, "cannot write HTTPRoute %s", n)
	}
	return &keep.Seen{State: want, Object: u}, nil
}

// Delete implements keep.Writer.
func (w *writer) Delete(ctx context.Context, n types.NamespacedName, seen *keep.Seen) error {
	return errors.Wrapf(keep.Delete(ctx, w.client, seen), "cannot delete HTTPRoute %s", n)
}

// build an anchor.
func build(n types.NamespacedName, want string) (*unstructured.Unstructured, error) {
	g, of, err := decode(want)
	if err != nil {
		return nil, err
	}
	var rules []any
	for chunk := range slices.Chunk(of, maxBackends) {
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
	u.SetLabels(map[string]string{keep.ManagedByLabel: keep.ManagedBy, ir.AnchorLabel: labelOf(g)})
	u.SetAnnotations(map[string]string{"gateway.tailscale.com/description": why})
	return u, nil
}
