//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// objectOf returns an object of a kind of Gateway API.
func objectOf(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(gwapiv1.GroupVersion.String())
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// statusOf returns the status of a route, as TYPE=STATUS/REASON of both conditions.
func (w *environment) statusOf(ctx context.Context, kind, name string) (string, error) {
	u := objectOf(kind, name)
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return "", err
	}
	parents, _, err := unstructured.NestedSlice(u.Object, "status", "parents")
	if err != nil || len(parents) != 1 {
		return "", errors.Errorf("%s %s has no status of one parent: %v", kind, name, u.Object["status"])
	}
	out := map[string]string{}
	parent, _ := parents[0].(map[string]any)
	conditions, _, err := unstructured.NestedSlice(parent, "conditions")
	if err != nil {
		return "", err
	}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		typ, _, _ := unstructured.NestedString(c, "type")
		status, _, _ := unstructured.NestedString(c, "status")
		reason, _, _ := unstructured.NestedString(c, "reason")
		out[typ] = status + "/" + reason
	}
	return "Accepted=" + out["Accepted"] + " ResolvedRefs=" + out["ResolvedRefs"], nil
}

// stands waits until a route has a status.
func (w *environment) stands(t *testing.T, kind, name, want string) {
	t.Helper()
	err := w.Until(within(t), func(ctx context.Context) error {
		got, err := w.statusOf(context.WithoutCancel(ctx), kind, name)
		if err == nil && got != want {
			err = errors.Errorf("%s %s has %s, want %s", kind, name, got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

const (
	good     = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs"
	notFound = "Accepted=True/Accepted ResolvedRefs=False/BackendNotFound"
	refused  = "Accepted=True/Accepted ResolvedRefs=False/RefNotPermitted"
)

// statuses checks the status of routes of all kinds, and that placeholders have no other effect.
func statuses(t *testing.T, w *environment) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "UDPRoute", "TLSRoute"} {
		w.stands(t, kind, "services", good)
	}
	previous := w.attached(t.Context(), t)
	if diff := cmp.Diff(map[string]int64{"http": 4, "tcp": 1, "tcp-endpoints": 0, "udp": 1, "udp-endpoints": 0, "tls": 1}, previous); diff != "" {
		t.Errorf("attached routes: -want, +got:\n%s", diff)
	}
	w.apply(t, "status.yaml")
	w.stands(t, "HTTPRoute", "granted", good)
	w.stands(t, "GRPCRoute", "refused", refused)
	w.stands(t, "TCPRoute", "refused", refused)
	w.stands(t, "HTTPRoute", "missing", notFound)
	w.stands(t, "TLSRoute", "missing", notFound)
	w.stands(t, "TCPRoute", "services", good)

	late := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.tailscale.com/v1alpha1",
		"kind":       "TailscaleServices",
		"metadata":   map[string]any{"name": "late", "namespace": "default"},
		"spec": map[string]any{
			"selector":   map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"vipService": map[string]any{"ports": []any{"tcp:80"}},
			"backends":   []any{map[string]any{"name": "app", "port": int64(80)}},
		},
	}}
	if err := w.kube.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	w.stands(t, "HTTPRoute", "missing", good)
	w.stands(t, "TLSRoute", "missing", good)

	placeholders := w.placeholders(t.Context(), t)
	if len(placeholders) != 1 {
		t.Fatalf("want one placeholder for the Gateway's L4 routes, got %d", len(placeholders))
	}
	w.stands(t, "HTTPRoute", placeholders[0].GetName(), "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs")
	dump, err := w.Admin(t.Context(), "/config_dump?include_eds")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(dump, []byte("placeholder")) {
		t.Error("Envoy has the placeholder")
	}
	for _, name := range []string{"granted", "missing"} {
		w.remove(t, objectOf("HTTPRoute", name))
	}
	w.remove(t, objectOf("GRPCRoute", "refused"))
	w.remove(t, objectOf("TCPRoute", "refused"))
	w.remove(t, objectOf("TLSRoute", "missing"))
	err = w.Until(within(t), func(ctx context.Context) error {
		if diff := cmp.Diff(previous, w.attached(ctx, t)); diff != "" {
			return errors.Errorf("attached routes: -want, +got:\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Backends that no route names are removed from the placeholder.
	err = w.Until(within(t), func(ctx context.Context) error {
		for _, a := range w.placeholders(ctx, t) {
			spec, err := a.MarshalJSON()
			if err != nil {
				return err
			}
			if strings.Contains(string(spec), `"late"`) {
				return errors.New("the placeholder still names a backend that no route names")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// attached returns the number of attached routes of the Gateway's listeners.
func (w *environment) attached(ctx context.Context, t *testing.T) map[string]int64 {
	t.Helper()
	u := objectOf("Gateway", "gw")
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatal(err)
	}
	listeners, _, err := unstructured.NestedSlice(u.Object, "status", "listeners")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, item := range listeners {
		l, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(l, "name")
		out[name], _, _ = unstructured.NestedInt64(l, "attachedRoutes")
	}
	return out
}

func (w *environment) placeholders(ctx context.Context, t *testing.T) []unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion(gwapiv1.GroupVersion.String())
	l.SetKind("HTTPRouteList")
	if err := w.kube.List(ctx, l, client.InNamespace("default"), client.HasLabels{ir.PlaceholderLabel}); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

func (w *environment) remove(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if err := w.kube.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func (w *environment) patch(t *testing.T, u *unstructured.Unstructured, patch string) {
	t.Helper()
	if err := w.kube.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
