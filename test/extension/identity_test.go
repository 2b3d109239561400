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

// TestIdentity checks that Envoy removes clients' identity headers before routes and backends get
// them, and that those from a proxy pass.
func TestIdentity(t *testing.T) {
	t.Parallel()
	w := newEnvironment(t)
	w.serve(t, "192.0.2.30:8000", http.HandlerFunc(returnHeaders))
	w.apply(t, "identity.yaml")

	header := http.Header{"X-Other": {"kept"}, identity.DeviceTags: {"tag:ci"}}
	passed := http.Header{"X-Rule": {"ci"}}
	for _, h := range identity.Headers() {
		if h != identity.DeviceTags {
			header[h] = []string{"ann", "bob"}
		}
	}
	maps.Copy(passed, header)
	dropped := http.Header{"X-Other": {"kept"}}
	forged := maps.Clone(header)
	forged["tailscale_user_login"], forged["Tailscale_Device-Tags"] = []string{"ann"}, []string{"tag:ci"}
	forged["tailscale.user.login"] = []string{"ann"}

	// No TailscaleGateway requires identities.
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.passes(url, header, passed))
	}
	public := joins(`[{"name": "corp", "listeners": [{"name": "tailnet", "identity": "Headers"}, {"name": "http"}]}]`)
	w.create(t, public)
	for _, url := range []string{gateway, fromSet} {
		w.until(t, w.passes(url, header, dropped))
		w.until(t, w.passes(url, forged, dropped))
	}
	w.until(t, w.passes(fromTailnet, header, passed))

	// Without the setting the listener passes all headers, and another listener trusts them.
	w.patch(t, public, `{"spec":{"tailnets":[{"name":"corp","listeners":[{"name":"http","identity":"Headers"}]}]}}`)
	w.until(t, w.passes(gateway, header, passed))
	for _, url := range []string{fromTailnet, fromSet} {
		w.until(t, w.passes(url, forged, dropped))
	}

	// A TailscaleGateway of another namespace changes no listener, and does not end the trust of
	// another, unless a ReferenceGrant permits it.
	theirs := joins(`[{"name": "corp", "listeners": [{"name": "tailnet", "identity": "Headers"}]}]`)
	theirs.SetNamespace("elsewhere")
	if err := unstructured.SetNestedField(theirs.Object, "default", "spec", "gatewayRef", "namespace"); err != nil {
		t.Fatal(err)
	}
	w.create(t, theirs)
	w.rejected(t, "tailnet")
	for url, want := range map[string]http.Header{gateway: passed, fromTailnet: dropped, fromSet: dropped} {
		w.until(t, w.passes(url, header, want))
	}
	w.remove(t, public)
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.passes(url, header, passed))
	}
	w.create(t, identityGrant())
	w.rejected(t)
	for url, want := range map[string]http.Header{gateway: dropped, fromTailnet: passed, fromSet: dropped} {
		w.until(t, w.passes(url, header, want))
	}
	w.remove(t, identityGrant())
	w.rejected(t, "tailnet")
	w.until(t, w.passes(gateway, header, passed))
	w.remove(t, theirs)
	for _, url := range []string{gateway, fromTailnet, fromSet} {
		w.until(t, w.passes(url, header, passed))
	}
}

// joins returns a TailscaleGateway of the Gateway.
func joins(tailnets string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	var entries []any
	if err := json.Unmarshal([]byte(tailnets), &entries); err != nil {
		panic(err)
	}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind("TailscaleGateway"))
	u.SetNamespace("default")
	u.SetName("public")
	u.Object["spec"] = map[string]any{"gatewayRef": map[string]any{"name": "gw"}, "tailnets": entries}
	return u
}

// identityGrant permits TailscaleGateways of the namespace elsewhere to set the identity of the
// Gateway's listeners.
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

// rejected waits until the report of the other namespace has these listeners as rejected.
func (w *environment) rejected(t *testing.T, want ...string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind(tailnetv1alpha1.GatewayReportKind))
		if err := w.kube.Get(ctx, types.NamespacedName{Namespace: "elsewhere", Name: names.GatewayReport("public")}, u); err != nil {
			return err
		}
		got, _, err := unstructured.NestedStringSlice(u.Object, "spec", "listenersWithoutIdentity")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.Errorf("rejected listeners: -want, +got:\n%s", diff)
		}
		return nil
	})
}

// returnHeaders responds with the headers of the request.
func returnHeaders(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(r.Header) // The client may have gone.
}

// passes returns a check that the backend gets these headers for a request: those that start with
// X-Other and X-Rule, and the identity headers.
func (w *environment) passes(url string, header, want http.Header) func(context.Context) error {
	return w.passesAt(url, "", header, want)
}

// passesAt is like passes, for a host.
func (w *environment) passesAt(url, host string, header, want http.Header) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header, req.Host = header.Clone(), host
		c := &http.Client{Transport: &http.Transport{DialContext: w.Dial, DisableKeepAlives: true}}
		rsp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer rsp.Body.Close() // The body is only read.
		if rsp.StatusCode != http.StatusOK {
			return errors.Errorf("%s returns %s", url, rsp.Status)
		}
		all := http.Header{}
		if err := json.NewDecoder(rsp.Body).Decode(&all); err != nil {
			return err
		}
		maps.DeleteFunc(all, func(h string, _ []string) bool { return h != "X-Other" && h != "X-Rule" && !identity.Is(h) })
		if diff := cmp.Diff(want, all); diff != "" {
			return errors.Errorf("headers from %s: -want, +got:\n%s", url, diff)
		}
		return nil
	}
}
