//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// fromSet is the listener of the ListenerSet.
const fromSet = "http://127.0.0.1:8890/"

// TestIdentity shows that what a client says of who it is reaches nobody where clients
// are, and neither a route, and that what a proxy says does.
func TestIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(t, "192.0.2.30:8000", http.HandlerFunc(repeats))
	w.apply(t, "identity.yaml")

	said := http.Header{"X-Other": {"kept"}, identity.DeviceTags: {"tag:ci"}}
	heard := http.Header{"X-Rule": {"ci"}}
	for _, h := range identity.Headers() {
		if h != identity.DeviceTags {
			said[h] = []string{"ann", "bob"}
		}
	}
	maps.Copy(heard, said)
	dropped := http.Header{"X-Other": {"kept"}}
	made := maps.Clone(said)
	made["tailscale_user_login"], made["Tailscale_Device-Tags"] = []string{"ann"}, []string{"tag:ci"}

	// Nobody has asked for anything yet.
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.hears(url, said, heard))
	}
	public := joins(`[{"name": "corp", "listeners": [{"name": "tailnet", "identity": "Headers"}, {"name": "http"}]}]`)
	w.create(t, public)
	for _, url := range []string{gateway, fromSet} {
		w.until(t, w.hears(url, said, dropped))
		w.until(t, w.hears(url, made, dropped))
	}
	w.until(t, w.hears(fromTailnet, said, heard))

	// The listener is told no more: then nobody is, while another one is.
	w.patch(t, public, `{"spec":{"tailnets":[{"name":"corp","listeners":[{"name":"http","identity":"Headers"}]}]}}`)
	w.until(t, w.hears(gateway, said, heard))
	for _, url := range []string{fromTailnet, fromSet} {
		w.until(t, w.hears(url, made, dropped))
	}

	// Another namespace has nobody believed, and takes nothing from who is, unless a
	// ReferenceGrant lets it.
	theirs := joins(`[{"name": "corp", "listeners": [{"name": "tailnet", "identity": "Headers"}]}]`)
	theirs.SetNamespace("elsewhere")
	if err := unstructured.SetNestedField(theirs.Object, "default", "spec", "gatewayRef", "namespace"); err != nil {
		t.Fatal(err)
	}
	w.create(t, theirs)
	w.untold(t, "tailnet")
	for url, want := range map[string]http.Header{gateway: heard, fromTailnet: dropped, fromSet: dropped} {
		w.until(t, w.hears(url, said, want))
	}
	w.remove(t, public)
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.hears(url, said, dropped))
	}
	w.create(t, identityGrant())
	w.untold(t)
	for url, want := range map[string]http.Header{gateway: dropped, fromTailnet: heard, fromSet: dropped} {
		w.until(t, w.hears(url, said, want))
	}
	w.remove(t, identityGrant())
	w.untold(t, "tailnet")
	w.until(t, w.hears(fromTailnet, said, dropped))
	w.remove(t, theirs)
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.hears(url, said, heard))
	}
}

// joins is a TailscaleGateway of the Gateway.
func joins(tailnets string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	var of []any
	if err := json.Unmarshal([]byte(tailnets), &of); err != nil {
		panic(err)
	}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind("TailscaleGateway"))
	u.SetNamespace("default")
	u.SetName("public")
	u.Object["spec"] = map[string]any{"gatewayRef": map[string]any{"name": "gw"}, "tailnets": of}
	return u
}

// identityGrant lets TailscaleGateways of namespace elsewhere say which listeners of the
// Gateway are told who asks.
func identityGrant() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(gwapiv1beta1.GroupVersion.String())
	u.SetKind("ReferenceGrant")
	u.SetNamespace("default")
	u.SetName("identity")
	u.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": gatewayv1alpha1.Group, "kind": gatewayv1alpha1.TailscaleGatewayKind, "namespace": "elsewhere"}},
		"to":   []any{map[string]any{"group": gwapiv1beta1.GroupName, "kind": "Gateway", "name": "gw"}},
	}
	return u
}

// untold waits until the report of the other namespace tells of the listeners that are not
// told who asks.
func (w *world) untold(t *testing.T, want ...string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind(tailnetv1alpha1.GatewayReportKind))
		if err := w.kube.Get(ctx, types.NamespacedName{Namespace: "elsewhere", Name: names.GatewayReport("public")}, u); err != nil {
			return err
		}
		got, _, err := unstructured.NestedStringSlice(u.Object, "spec", "untold")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.Errorf("listeners that are not told: -want, +got:\n%s", diff)
		}
		return nil
	})
}

// repeats the headers that it is asked with.
func repeats(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(r.Header) // Who is gone needs no answer.
}

// hears returns a check that a request with headers comes with others: those that start
// with X-Other and X-Rule, and those that may tell who asks.
func (w *world) hears(url string, said, want http.Header) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header = said.Clone()
		c := &http.Client{Transport: &http.Transport{DialContext: w.Dial, DisableKeepAlives: true}}
		rsp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer rsp.Body.Close() // Only read.
		if rsp.StatusCode != http.StatusOK {
			return errors.Errorf("%s answers %s", url, rsp.Status)
		}
		all := http.Header{}
		if err := json.NewDecoder(rsp.Body).Decode(&all); err != nil {
			return err
		}
		maps.DeleteFunc(all, func(h string, _ []string) bool { return h != "X-Other" && h != "X-Rule" && !identity.Is(h) })
		if diff := cmp.Diff(want, all); diff != "" {
			return errors.Errorf("headers by %s: -want, +got:\n%s", url, diff)
		}
		return nil
	}
}
