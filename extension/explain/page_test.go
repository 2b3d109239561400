// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// unprobed returns no health, as a prober that does not run.
func unprobed(ir.TargetKey) (health.Target, bool) { return health.Target{}, false }

func get(t *testing.T, s *ir.Snapshot, v Probes, url string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	NewPage(func() *ir.Snapshot { return s }, v, reported, nil, logging.NewNopLogger()).Register(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	return w
}

// reported returns the reports of two TailscaleGateways, one of which has many routes.
func reported() []*tailnetv1alpha1.GatewayReport {
	web := &tailnetv1alpha1.GatewayReport{ObjectMeta: metav1.ObjectMeta{Namespace: "infra"}, Spec: tailnetv1alpha1.GatewayReportSpec{Gateway: "web"}}
	for i := range 60 {
		name := fmt.Sprintf("app-%02d", i)
		web.Spec.GeneratedRoutes = append(web.Spec.GeneratedRoutes, tailnetv1alpha1.ReportedGeneratedRoute{
			Namespace: "infra", Name: "web-prod-" + name, Tailnet: "prod", Direction: tailnetv1alpha1.DirectionEgress, Service: name,
			Hostname: name + ".tailscale.local", PathPrefix: "/tailscale/" + name, State: tailnetv1alpha1.GeneratedRouteAccepted,
		})
	}
	other := &tailnetv1alpha1.GatewayReport{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: tailnetv1alpha1.GatewayReportSpec{Gateway: "other"}}
	other.Spec.GeneratedRoutes = []tailnetv1alpha1.ReportedGeneratedRoute{{
		Namespace: "team", Tailnet: "dev", Direction: tailnetv1alpha1.DirectionEgress, Service: "app-01",
		Hostname: "app-01.tailscale.local", PathPrefix: "/", State: tailnetv1alpha1.GeneratedRouteConflict, Message: "HTTPRoute team/mine has it <already>",
	}}
	return []*tailnetv1alpha1.GatewayReport{web, other}
}

// many returns a snapshot with many routes, each with a separate target.
func many(n int) *ir.Snapshot {
	var c ir.Contents
	for i := range n {
		name := fmt.Sprintf("r-%04d", i)
		c.Routes = append(c.Routes, route(ir.KindHTTPRoute, name, []string{name + ".example.com"}, rule(name, prefix("/"))))
		c.Targets = append(c.Targets, &ir.Target{
			Key:     ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: name, Port: 80, Protocol: ir.ProtocolHTTP},
			Problem: "nothing is there",
		})
	}
	return ir.NewSnapshot(c)
}

func TestPage(t *testing.T) {
	evil := route(ir.KindHTTPRoute, "evil", []string{"evil.example.com"}, rule("web", ir.Match{PathType: "RegularExpression", Path: `/<script>alert("x")</script>.*`}))
	cases := map[string]struct {
		reason   string
		snapshot *ir.Snapshot
		probes   Probes
		url      string
		want     []string
		unwanted []string
	}{
		"Empty": {
			reason:   "A page without routes should say so.",
			snapshot: &ir.Snapshot{},
			url:      "/",
			want:     []string{"No route has a Tailscale backend.", "page 1 of 1"},
		},
		"Asked": {
			reason:   "The answer to a query should come first.",
			snapshot: many(3),
			url:      "/?host=r-0001.example.com&path=/a%3Fb=c&method=get",
			want:     []string{"First: <code>HTTPRoute shop/r-0001</code>", "path begins with /", "nothing is there", `value="/a"`, `value="GET"`},
		},
		"First": {
			reason:   "Thousands of routes should come in pages, and trouble should be cut.",
			snapshot: many(5000),
			url:      "/",
			want:     []string{"5000 rules, 5000 targets", "page 1 of 100", "shop/r-0049</code>, rule", `href="/?page=2&amp;filter="`},
			unwanted: []string{"shop/r-0050</code>, rule", "previous", "services/shop/r-0050/"},
		},
		"Last": {
			reason:   "A page after the last should be the last.",
			snapshot: many(5000),
			url:      "/?page=1000",
			want:     []string{"page 100 of 100", "shop/r-4999</code>, rule", "previous"},
			unwanted: []string{">next<"},
		},
		"NoPage": {
			reason:   "An invalid number should select the first page.",
			snapshot: many(60),
			url:      "/?page=-1%22",
			want:     []string{"page 1 of 2"},
		},
		"Filter": {
			reason:   "A filter should select rules, and stay in the links.",
			snapshot: many(1000),
			url:      "/?filter=r-00%26",
			want:     []string{"0 rules"},
		},
		"FilterLinks": {
			reason:   "A filter should stay in the links.",
			snapshot: many(1000),
			url:      "/?filter=r-0",
			want:     []string{"1000 rules", `href="/?page=2&amp;filter=r-0"`},
		},
		"Gateway": {
			reason: "A Gateway should be shown with its class and listeners.",
			snapshot: ir.NewSnapshot(ir.Contents{
				Routes:   []*ir.Route{route(ir.KindHTTPRoute, "web", nil, rule("web", prefix("/")))},
				Gateways: map[types.NamespacedName]*ir.Gateway{named("gw"): {Class: "envoy", Listeners: []string{"https: HTTPS 443 *.example.com"}}},
			}),
			url:      "/",
			want:     []string{"<code>shop/gw</code></td><td><code>envoy</code></td><td><code>https: HTTPS 443 *.example.com</code>"},
			unwanted: []string{"no such Gateway"},
		},
		"NoGateway": {
			reason:   "Routes may attach to a missing Gateway.",
			snapshot: many(1),
			url:      "/",
			want:     []string{"no such Gateway"},
		},
		"Probes": {
			reason: "The probed health of an endpoint should stand beside the health for Envoy, and the tier beside the cluster.",
			snapshot: ir.NewSnapshot(ir.Contents{
				Routes: []*ir.Route{route(ir.KindHTTPRoute, "web", nil, rule("web", prefix("/")))},
				Targets: []*ir.Target{{
					Key:        ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP},
					Localities: []ir.Locality{{Name: "app", Weight: 1, Endpoints: []ir.Endpoint{{Address: "10.0.0.1", Port: 80, Health: ir.Degraded}, {Address: "10.0.0.2", Port: 80}}}},
				}},
			}),
			probes: func(k ir.TargetKey) (health.Target, bool) {
				return health.Target{Tier: health.TierLocal, Endpoints: []health.Endpoint{
					{Address: "10.0.0.1", Port: 80, Status: health.Unhealthy, HealthScore: 30, Reason: "HTTP status 500"},
				}}, k.Name == "web"
			},
			url: "/",
			want: []string{
				"<code>10.0.0.1:80</code> degraded, used when no other is left; <span class=\"bad\">probed: Unhealthy, score 30, HTTP status 500</span>",
				"<code>10.0.0.2:80</code> decided by Envoy&#39;s own checks<br>", "answered by Local",
			},
		},
		"Generated": {
			reason:   "Generated routes should be shown with their TailscaleGateways, failing ones first, and cut.",
			snapshot: &ir.Snapshot{},
			url:      "/",
			want: []string{
				"61, of which 50 are listed", "<code>team/other</code>, tailnet dev, Egress", "Conflict <span class=\"bad\">HTTPRoute team/mine has it &lt;already&gt;</span>",
				"<code>app-00.tailscale.local/tailscale/app-00</code></td><td>app-00</td><td><code>infra/web</code>, tailnet prod, Egress</td><td><code>HTTPRoute infra/web-prod-app-00</code></td><td>Accepted</td>",
			},
			unwanted: []string{"web-prod-app-49<"},
		},
		"GeneratedFilter": {
			reason:   "A filter should select generated routes too.",
			snapshot: &ir.Snapshot{},
			url:      "/?filter=app-59",
			want:     []string{"1, of which 1 are listed", "web-prod-app-59<"},
			unwanted: []string{"web-prod-app-58<"},
		},
		"GeneratedAsked": {
			reason:   "An answer should have the matching generated routes only.",
			snapshot: &ir.Snapshot{},
			url:      "/?host=app-01.tailscale.local&path=/tailscale/app-01/status&filter=none",
			want:     []string{"Generated routes for it", "web-prod-app-01<", "team/other"},
			unwanted: []string{"web-prod-app-02<", "are listed"},
		},
		"GeneratedElsewhere": {
			reason:   "A prefix should match only paths below it.",
			snapshot: &ir.Snapshot{},
			url:      "/?host=app-02.tailscale.local&path=/tailscale/app-020&filter=none",
			unwanted: []string{"Generated routes for it"},
		},
		"Escaped": {
			reason:   "User input should not become markup.",
			snapshot: ir.NewSnapshot(ir.Contents{Routes: []*ir.Route{evil}}),
			url:      "/?host=%22%3E%3Cscript%3E&path=%3Cscript%3E&filter=",
			want:     []string{"&lt;script&gt;"},
			unwanted: []string{"<script"},
		},
	}
	for name, tc := range cases {
		if tc.probes == nil {
			tc.probes = unprobed
		}
		t.Run(name, func(t *testing.T) {
			w := get(t, tc.snapshot, tc.probes, tc.url)
			if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get(contentType), "text/html") || w.Header().Get("Content-Security-Policy") == "" {
				t.Fatalf("\n%s\nGET %s: %d, %v", tc.reason, tc.url, w.Code, w.Header())
			}
			for _, s := range tc.want {
				if !strings.Contains(w.Body.String(), s) {
					t.Errorf("\n%s\nGET %s: no %q", tc.reason, tc.url, s)
				}
			}
			for _, s := range tc.unwanted {
				if strings.Contains(w.Body.String(), s) {
					t.Errorf("\n%s\nGET %s: has %q", tc.reason, tc.url, s)
				}
			}
		})
	}
}

func TestJSON(t *testing.T) {
	s := many(60)
	var a Answer
	w := get(t, s, unprobed, "/explain?host=r-0001.example.com&path=/")
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Rules) != 1 || a.Rules[0].Route != "HTTPRoute shop/r-0001" || a.Rules[0].Backends[0].Problem != "nothing is there" {
		t.Errorf("GET /explain?host=...: %s", w.Body)
	}
	var o Overview
	if err := json.Unmarshal(get(t, s, unprobed, "/explain?page=2").Body.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	got := []int{len(o.Rules), o.Total, o.Page, o.Pages, len(o.Trouble), o.Targets, len(o.Gateways), o.Gateways[0].Routes}
	if diff := cmp.Diff([]int{10, 60, 2, 2, 50, 60, 1, 60}, got); diff != "" {
		t.Errorf("GET /explain?page=2: -want, +got:\n%s", diff)
	}
}

func TestReadOnly(t *testing.T) {
	mux := http.NewServeMux()
	NewPage(func() *ir.Snapshot { return &ir.Snapshot{} }, unprobed, nil, nil, logging.NewNopLogger()).Register(mux)
	for _, url := range []string{"/", "/explain"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", url, w.Code)
		}
	}
}

// BenchmarkPage measures the time of a page with 5000 routes.
func BenchmarkPage(b *testing.B) {
	s := many(5000)
	mux := http.NewServeMux()
	NewPage(func() *ir.Snapshot { return s }, unprobed, nil, nil, logging.NewNopLogger()).Register(mux)
	for b.Loop() {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/?host=r-2500.example.com&path=/", nil))
	}
}
