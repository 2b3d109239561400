// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errBoom = errors.New("boom")

const method = "/envoygateway.extension.EnvoyGatewayExtension/PostTranslateModify"

// call calls a hook that takes the given time and returns the given error.
func call(t *testing.T, o *Observer, took time.Duration, fail error) error {
	t.Helper()
	_, err := o.Interceptor(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
		<-time.After(took)
		return nil, fail
	})
	return err
}

func get(t *testing.T, o *Observer, path, accept string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	o.Handler(false).ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestProbes(t *testing.T) {
	silent := func() time.Duration { return 11 * time.Minute }
	type want struct {
		ready   int
		text    string
		health  string
		healthz int
	}
	cases := map[string]struct {
		reason string
		opts   Options
		setup  func(*testing.T, *Observer)
		want   want
	}{
		"Starting": {
			reason: "While objects are missing the replica should not be ready, and list what is missing.",
			opts:   Options{Waiting: func() []string { return []string{"HTTPRoute: is not listed yet"} }},
			setup:  func(*testing.T, *Observer) {},
			want:   want{ready: 503, text: "Not all objects are known yet; HTTPRoute: is not listed yet", health: "Starting", healthz: 200},
		},
		"Serving": {
			reason: "With all objects and no failure the replica should be ready.",
			setup:  func(_ *testing.T, o *Observer) { o.Serving() },
			want:   want{ready: 200, text: "ok", health: "Serving", healthz: 200},
		},
		"FewFailures": {
			reason: "One failure of ten should not count as degraded.",
			setup: func(t *testing.T, o *Observer) {
				o.Serving()
				for range 9 {
					_ = call(t, o, 0, nil)
				}
				_ = call(t, o, 0, errBoom)
			},
			want: want{ready: 200, text: "ok", health: "Serving", healthz: 200},
		},
		"Failures": {
			reason: "More failures should show, but the replica should stay ready: the others would be no better.",
			setup: func(t *testing.T, o *Observer) {
				o.Serving()
				for range 8 {
					_ = call(t, o, 0, nil)
				}
				for range 2 {
					_ = call(t, o, 0, errBoom)
				}
			},
			want: want{ready: 200, text: "Degraded: 20 % of the last hooks failed; the log has the reasons", health: "Degraded", healthz: 200},
		},
		"FailuresOfOld": {
			reason: "Failures should expire after a hundred hooks without one.",
			setup: func(t *testing.T, o *Observer) {
				o.Serving()
				for range 50 {
					_ = call(t, o, 0, errBoom)
				}
				for range window {
					_ = call(t, o, 0, nil)
				}
			},
			want: want{ready: 200, text: "ok", health: "Serving", healthz: 200},
		},
		"Silence": {
			reason: "A source that is out of reach for long should show.",
			opts:   Options{Silence: silent},
			setup:  func(_ *testing.T, o *Observer) { o.Serving() },
			want:   want{ready: 200, text: "Degraded: The Kubernetes API has not answered for 11m0s; check the connection to the API server", health: "Degraded", healthz: 200},
		},
		"Stopping": {
			reason: "A stopping replica should not be ready, and stay so.",
			setup: func(_ *testing.T, o *Observer) {
				o.Serving()
				o.Stopping()
				o.Serving()
			},
			want: want{ready: 503, text: "Stopping", health: "Stopping", healthz: 200},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewObserver(tc.opts)
			tc.setup(t, o)
			var got want
			got.ready, got.text = get(t, o, "/ready", "")
			got.healthz, _ = get(t, o, "/healthz", "")
			_, body := get(t, o, "/health", "")
			var report healthReport
			if err := json.Unmarshal([]byte(body), &report); err != nil {
				t.Fatal(err)
			}
			got.health = report.Status
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewObserver(Options{
			Version:   "v1",
			Resources: func() map[string]int { return map[string]int{"targets": 3} },
			Expiry: map[string]func() (time.Time, error){
				"eds":   func() (time.Time, error) { return time.Unix(60, 0), nil },
				"hooks": func() (time.Time, error) { return time.Time{}, errBoom },
			},
		})
		o.Serving()
		_ = call(t, o, time.Second, nil)
		_ = call(t, o, 3*time.Second, errBoom)
		o.Translated("shop/gw", map[string]int{"cluster-shared": 2})
		o.Translated("", map[string]int{"cluster-shared": 1})

		_, body := get(t, o, "/metrics", "application/json")
		var got metricsReport
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		want := metricsReport{
			Version:       "v1",
			UptimeSeconds: 4,
			Hooks: map[string]hookReport{"PostTranslateModify": {
				Total: 2, Successful: 1, Failed: 1, LastDurationSeconds: 3, AverageDurationSeconds: 2,
			}},
			Gateways:  map[string]gatewayReport{"shop/gw": {LastHook: time.Now().UTC(), Outcomes: map[string]int{"cluster-shared": 2}}},
			Resources: map[string]int{"targets": 3},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("JSON: -want, +got:\n%s", diff)
		}
		if err := testutil.GatherAndCompare(o.registry, strings.NewReader(`
# HELP tailscale_gateway_extension_certificate_expiry_timestamp_seconds Time at which a server's certificate expires.
# TYPE tailscale_gateway_extension_certificate_expiry_timestamp_seconds gauge
tailscale_gateway_extension_certificate_expiry_timestamp_seconds{server="eds"} 60
# HELP tailscale_gateway_extension_hook_failures_total Hooks that returned an error. Envoy Gateway then keeps the configuration of the Gateway's Envoys.
# TYPE tailscale_gateway_extension_hook_failures_total counter
tailscale_gateway_extension_hook_failures_total{hook="PostTranslateModify"} 1
# HELP tailscale_gateway_extension_last_translation_timestamp_seconds Time of the last translation of a Gateway by Envoy Gateway.
# TYPE tailscale_gateway_extension_last_translation_timestamp_seconds gauge
tailscale_gateway_extension_last_translation_timestamp_seconds{gateway="shop/gw"} 9.46684804e+08
# HELP tailscale_gateway_extension_outcomes_total Results of all translations. Outcomes are the clusters cluster-shared, cluster-dedicated, cluster-removed and cluster-failover (Services that fail over to other clusters); the rules rule-translated, rule-split (over several clusters) and rule-skipped-REASON (as Envoy Gateway made them); the routes route-inserted (by policies) and route-denied (policies insert too many); and answer-stale, answers that Envoy Gateway has to ask for again.
# TYPE tailscale_gateway_extension_outcomes_total counter
tailscale_gateway_extension_outcomes_total{outcome="cluster-shared"} 3
# HELP tailscale_gateway_extension_ready Whether the extension has all objects and serves.
# TYPE tailscale_gateway_extension_ready gauge
tailscale_gateway_extension_ready 1
# HELP tailscale_gateway_extension_resources Known objects, by kind.
# TYPE tailscale_gateway_extension_resources gauge
tailscale_gateway_extension_resources{kind="targets"} 3
# HELP tailscale_gateway_extension_rules Result of a Gateway's last translation. Outcomes are the clusters cluster-shared, cluster-dedicated, cluster-removed and cluster-failover (Services that fail over to other clusters); the rules rule-translated, rule-split (over several clusters) and rule-skipped-REASON (as Envoy Gateway made them); the routes route-inserted (by policies) and route-denied (policies insert too many); and answer-stale, answers that Envoy Gateway has to ask for again.
# TYPE tailscale_gateway_extension_rules gauge
tailscale_gateway_extension_rules{gateway="shop/gw",outcome="cluster-shared"} 2
`), "tailscale_gateway_extension_certificate_expiry_timestamp_seconds", "tailscale_gateway_extension_rules",
			"tailscale_gateway_extension_hook_failures_total", "tailscale_gateway_extension_last_translation_timestamp_seconds",
			"tailscale_gateway_extension_outcomes_total", "tailscale_gateway_extension_ready", "tailscale_gateway_extension_resources"); err != nil {
			t.Error(err)
		}
		if problems, err := testutil.GatherAndLint(o.registry); err != nil || len(problems) > 0 {
			t.Errorf("metrics should follow Prometheus' conventions: %v %v", problems, err)
		}
	})
}

func TestPanic(t *testing.T) {
	o := NewObserver(Options{})
	_, err := o.Interceptor(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
		panic("boom")
	})
	if got := status.Code(err); got != codes.Internal {
		t.Errorf("a hook that panics should return an error: want %s, got %s", codes.Internal, got)
	}
	_, body := get(t, o, "/metrics", "")
	if want := `tailscale_gateway_extension_hook_failures_total{hook="PostTranslateModify"} 1`; !strings.Contains(body, want) {
		t.Errorf("a hook that panics should count as failed: want %q", want)
	}
}

func TestForgetGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewObserver(Options{})
		o.Translated("old/gw", nil)
		for i := range maxGateways {
			<-time.After(time.Second)
			o.Translated("new/"+strings.Repeat("x", i+1), nil)
		}
		if _, ok := o.gateways["old/gw"]; ok || len(o.gateways) != maxGateways {
			t.Errorf("want the %d latest Gateways, got %d, the oldest among them: %t", maxGateways, len(o.gateways), ok)
		}
	})
}

func TestProfiles(t *testing.T) {
	o := NewObserver(Options{})
	for enabled, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		w := httptest.NewRecorder()
		o.Handler(enabled).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/cmdline", nil))
		if w.Code != want {
			t.Errorf("profiles on: %t: want %d, got %d", enabled, want, w.Code)
		}
	}
}

// TestHooks checks the hooks of each Gateway, whatever their result.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway := ""
		o := NewObserver(Options{Gateway: func(any) string { return gateway }})
		for _, tc := range []struct {
			gateway string
			fail    error
		}{{"a/gw", nil}, {"b/gw", nil}, {"", nil}, {"a/gw", errBoom}} {
			gateway = tc.gateway
			if err := call(t, o, time.Second, tc.fail); !errors.Is(err, tc.fail) {
				t.Fatal(err)
			}
		}
		at := time.Now()
		want := map[string]Hooks{"a/gw": {Total: 2, Failed: 1, Last: at}, "b/gw": {Total: 1, Last: at.Add(-2 * time.Second)}, "c/gw": {}}
		for g, h := range want {
			if diff := cmp.Diff(h, o.Hooks(g)); diff != "" {
				t.Errorf("hooks of %s: -want, +got:\n%s", g, diff)
			}
		}
	})
}
