// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestSettings checks that a rule with separate settings is explained by its target, and that the
// name of its cluster in Envoy finds it.
func TestSettings(t *testing.T) {
	const cluster = "tailscale/services/shop/web/80/http"
	key := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	s := ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{
			route(ir.KindHTTPRoute, "a", []string{"a.example.com"}, rule("web")),
			route(ir.KindHTTPRoute, "b", []string{"b.example.com"}, rule("web")),
			route(ir.KindHTTPRoute, "other", []string{"c.example.com"}, rule("other")),
		},
		Targets: []*ir.Target{{Key: key, Problem: "nothing is there"}},
	})
	settings := &Settings{}
	slow := hooks.Settings{Route: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: named("a")}, Target: key, Cluster: cluster + "/settings/0123", Differs: []string{"connectTimeout"}}
	settings.Translated("shop/gw", []hooks.Settings{slow})
	settings.Translated("shop/other", []hooks.Settings{slow})
	mux := http.NewServeMux()
	probed := func(k ir.TargetKey) (health.Target, bool) { return health.Target{Tier: health.TierRemote}, k == key }
	NewPage(func() *ir.Snapshot { return s }, probed, nil, settings, logging.NewNopLogger()).Register(mux)
	ask := func(url string, dst any) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
		if err := json.Unmarshal(w.Body.Bytes(), dst); err != nil {
			t.Fatal(err)
		}
	}

	for host, want := range map[string]Backend{
		"a.example.com": {Target: cluster, Cluster: slow.Cluster, Settings: []Setting{{Cluster: slow.Cluster, Differs: slow.Differs}}, Tier: health.TierRemote},
		"b.example.com": {Target: cluster, Cluster: cluster, Tier: health.TierRemote},
	} {
		var a Answer
		ask("/explain?path=/&host="+host, &a)
		got := a.Rules[0].Backends[0]
		if diff := cmp.Diff(want, Backend{Target: got.Target, Cluster: got.Cluster, Settings: got.Settings, Tier: got.Tier}); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", host, diff)
		}
	}

	var o Overview
	ask("/explain?filter="+slow.Cluster, &o)
	if o.Total != 2 || len(o.Trouble) != 1 || len(o.Trouble[0].Settings) != 1 {
		t.Errorf("the cluster's name finds %d rules, and trouble %+v, want both routes to the target, and its settings once", o.Total, o.Trouble)
	}

	settings.Translated("shop/gw", nil)
	settings.Translated("shop/other", nil)
	var a Answer
	ask("/explain?path=/&host=a.example.com", &a)
	if got := a.Rules[0].Backends[0]; got.Cluster != cluster || got.Settings != nil {
		t.Errorf("settings remain after the last translation with them: %+v", got)
	}
}
