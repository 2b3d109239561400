//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// TestAccepts checks that routes carry all protocols that they support, with the weights of their
// backends, and that edits of routes do not disturb traffic.
func TestAccepts(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironmentOf(t, standalone.Options{Bootstrap: inZoneA})
	for _, addr := range []string{"192.0.2.10:8003", "192.0.2.10:8004", "192.0.2.10:8005", zoneA, zoneB, checksA, checksB} {
		w.serve(t, addr, respond(addr))
	}
	for _, addr := range []string{"192.0.2.10:8002", "192.0.2.20:10015"} {
		w.serveWebSocket(t, addr)
	}
	for _, f := range []string{"backends.yaml", "routes.yaml", "accept.yaml", "listenersets.yaml", "tuning.yaml"} {
		w.apply(t, f)
	}
	t.Run("Protocols", func(t *testing.T) { speaks(t, w) })
	t.Run("ListenerSets", func(t *testing.T) { listenerSets(t, w) })
	t.Run("BackendTLS", func(t *testing.T) { backendTLS(t, w) })
	t.Run("TrafficPolicies", func(t *testing.T) { tunings(t, w) })
	t.Run("Shares", func(t *testing.T) { shares(t, w) })
	t.Run("Edits", func(t *testing.T) { edits(t, w) })
}

// listenerSets checks listeners of ListenerSets: their routes answer and follow a setting.
func listenerSets(t *testing.T, w *environment) {
	w.answers(t, "set.example.com", "192.0.2.10:8000")
	w.answersTCP(t, "127.0.0.1:8906", "192.0.2.10:9000")
	w.stands(t, "HTTPRoute", "set", good)
	w.stands(t, "TCPRoute", "set", good)
	w.reshapes(t, "tcp-set", "tailscale/services/default/tcp-set/9000/tcp", "8s")
}

// shares checks that the share of each backend matches its weight.
func shares(t *testing.T, w *environment) {
	const total, askers, tolerance = 10000, 4, 0.02
	cases := map[string]map[string]float64{
		"split.example.com": {"192.0.2.10:8000": 0.25, "192.0.2.20:10007": 0.75},
		"ours.example.com":  {"192.0.2.10:8000": 0.3, "192.0.2.20:10007": 0.7},
		"mixed.example.com": {"192.0.2.10:8000": 0.5, "192.0.2.10:8004": 0.3, "192.0.2.10:8005": 0.2},
		"zones.example.com": {zoneA: 0.75, zoneB: 0.25},
	}
	for host, want := range cases {
		t.Run(host, func(t *testing.T) {
			// Each endpoint must be healthy in Envoy.
			for backend := range want {
				w.answers(t, host, backend)
			}
			var mu sync.Mutex
			var done sync.WaitGroup
			got, failed := map[string]int{}, error(nil)
			ctx := within(t)
			for range askers {
				done.Go(func() {
					c := w.Client()
					defer c.CloseIdleConnections()
					for range total / askers {
						r := send(ctx, c, host)
						mu.Lock()
						got[r.backend]++
						failed = errors.Join(failed, r.err)
						mu.Unlock()
						if r.err != nil {
							return
						}
					}
				})
			}
			done.Wait()
			if failed != nil {
				t.Fatal(failed)
			}
			for backend, n := range got {
				if share := float64(n) / total; want[backend] == 0 || math.Abs(share-want[backend]) > tolerance {
					t.Errorf("%s answers %.3f of the requests, want %.3f", backend, share, want[backend])
				}
			}
			t.Logf("of %d requests: %v", total, got)
		})
	}
}

// edits changes a route's timeout, and health checks of shared clusters and of a route's own
// cluster, under load. No request is lost.
func edits(t *testing.T, w *environment) {
	w.apply(t, "edits.yaml")
	hosts := []string{"services.example.com", "endpoints.example.com", "own.example.com"}
	w.answers(t, hosts[0], "192.0.2.10:8000")
	w.answers(t, hosts[1], "192.0.2.20:10007")

	web := objectOf(v1alpha1.TailscaleServicesKind, "web")
	web.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
	policy := objectOf("BackendTrafficPolicy", "own")
	policy.SetAPIVersion("gateway.envoyproxy.io/v1alpha1")
	// The route shares a cluster until Envoy Gateway has the policy, and leaves it then.
	const own = "tailscale/services/default/web/80/http/httproute/default/own"
	w.until(t, w.checksEach(own, "3s"))
	w.answers(t, hosts[2], "192.0.2.10:8000")

	l := w.load(t, hosts...)
	began := time.Now()
	w.patch(t, objectOf("HTTPRoute", "services"), `{"spec":{"rules":[{"timeouts":{"request":"12s"},"backendRefs":[{"group":"gateway.tailscale.com","kind":"TailscaleServices","name":"web","port":80}]}]}}`)
	w.until(t, func(ctx context.Context) error {
		got, err := w.timeouts(ctx)
		if err == nil && got["services.example.com"] != "12s" {
			err = errors.Errorf("Envoy's timeouts are %v, want 12s for services.example.com", got)
		}
		return err
	})
	w.patch(t, web, `{"spec":{"loadBalancing":{"healthCheck":{"interval":"7s"}}}}`)
	w.until(t, w.checksEach("tailscale/services/default/web/80/http", "7s"))
	w.patch(t, policy, `{"spec":{"healthCheck":{"active":{"interval":"4s"}}}}`)
	w.until(t, w.checksEach(own, "4s"))
	took := time.Since(began)
	// Later failures count, too.
	l.more(t, w)
	all := l.end()
	for _, r := range all {
		if r.Err != nil {
			t.Errorf("a request to %s is lost %s after the first edit: %v", r.host, r.Began.Sub(began), r.Err)
		}
	}
	t.Logf("%d requests while three settings were edited within %s", len(all), took.Round(time.Millisecond))
}

// timeouts returns the timeouts of Envoy's routes, by domain.
func (w *environment) timeouts(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	return out, w.routes(ctx, func(domain string, r envoyRoute) { out[domain] = r.Route.Timeout })
}

// An envoyRoute holds the fields of an Envoy route that the tests read.
type envoyRoute struct {
	Match struct {
		Prefix    string `json:"prefix"`
		Separated string `json:"path_separated_prefix"`
	} `json:"match"`
	Route struct {
		Timeout string `json:"timeout"`
	} `json:"route"`
}

// routes calls a function with each route of Envoy.
func (w *environment) routes(ctx context.Context, fn func(domain string, r envoyRoute)) error {
	dump, err := w.Admin(ctx, "/config_dump?resource=dynamic_route_configs")
	if err != nil {
		return err
	}
	var content struct {
		Configs []struct {
			RouteConfig struct {
				VirtualHosts []struct {
					Domains []string     `json:"domains"`
					Routes  []envoyRoute `json:"routes"`
				} `json:"virtual_hosts"`
			} `json:"route_config"`
		} `json:"configs"`
	}
	if err := json.Unmarshal(dump, &content); err != nil {
		return errors.Wrap(err, "cannot read Envoy's routes")
	}
	for _, c := range content.Configs {
		for _, h := range c.RouteConfig.VirtualHosts {
			for _, d := range h.Domains {
				for _, r := range h.Routes {
					fn(d, r)
				}
			}
		}
	}
	return nil
}
