//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	localBackend  = "192.0.2.10:8000"
	remoteBackend = "192.0.2.20:10008"

	// clients is the number of parallel clients for each target.
	clients = 5
	rest    = 5 * time.Millisecond
)

// A trafficRequest is a request of a traffic, with the host and the path of its target. The answer is the address
// that answered.
type trafficRequest struct {
	load.Request

	host, path string
}

// A traffic is a load on Envoy, with its requests so far.
type traffic struct {
	*load.Load

	mu  sync.Mutex
	all []trafficRequest
}

// load sends requests to targets until it is stopped, with the same number of clients for each. A
// target is HOST or HOST/PATH.
func (w *environment) load(t *testing.T, targets ...string) *traffic {
	t.Helper()
	l, h := &traffic{}, load.HTTP{Dial: w.Dial}
	for _, target := range targets {
		h.Targets = append(h.Targets, targetOf(target))
	}
	l.Load = load.Start(t.Context(), load.Options{
		Client: h.Clients, Workers: clients * len(targets), Interval: rest, Timeout: limit,
		Observe: func(r load.Request) {
			host, path, _ := strings.Cut(targets[r.N%len(targets)], "/")
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all = append(l.all, trafficRequest{Request: r, host: host, path: path})
		},
	})
	t.Cleanup(func() { l.end() })
	l.more(t, w)
	return l
}

// targetOf returns what a request gets for HOST or HOST/PATH.
func targetOf(target string) load.Target {
	host, path, _ := strings.Cut(target, "/")
	return load.Target{URL: gateway + path, Host: host}
}

// more waits for many more requests.
func (l *traffic) more(t *testing.T, w *environment) {
	t.Helper()
	const many = 500
	enough := l.Requests() + many
	err := w.Until(within(t), func(context.Context) error {
		if n := l.Requests(); n < enough {
			return errors.Errorf("%d requests, want %d", n, enough)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// end stops the load, and returns all of its requests.
func (l *traffic) end() []trafficRequest {
	l.Stop()
	return l.all
}

// TestLosesNothing ends the only local backend in two ways under load: only its requests in flight
// are lost.
func TestLosesNothing(t *testing.T) {
	w := newEnvironment(t)
	for _, f := range []string{"backends.yaml", "routes.yaml", "lossless.yaml"} {
		w.apply(t, f)
	}
	w.answers(t, "services.example.com", localBackend)
	w.answers(t, "safe.example.com", localBackend)

	t.Run("PolicyOfRoute", func(t *testing.T) { w.attaches(t) })
	// The backend must outlive the step that restarts it.
	revive := func() { w.serve(t, localBackend, respond(localBackend)) }
	t.Run("Killed", func(t *testing.T) {
		w.healthy(t, remoteBackend)
		w.healthy(t, localBackend)
		l := w.load(t, "services.example.com", "safe.example.com")
		failure := load.Span{Began: time.Now()}
		w.http[localBackend].CloseClientConnections()
		w.http[localBackend].Close()
		failure.Ended = time.Now()
		w.answers(t, "services.example.com", remoteBackend)
		w.judge(t, l, failure)

		revive()
		w.answers(t, "services.example.com", localBackend)
	})
	t.Run("Dropped", func(t *testing.T) {
		w.healthy(t, remoteBackend)
		w.healthy(t, localBackend)
		l := w.load(t, "services.example.com", "safe.example.com")
		failure := load.Span{Began: time.Now()}
		if err := w.Drop(netip.MustParseAddr("192.0.2.10")); err != nil {
			t.Fatal(err)
		}
		w.answers(t, "services.example.com", remoteBackend)
		failure.Ended = time.Now()
		w.judge(t, l, failure)
	})
}

// attaches attaches a policy to a route under load that needs no separate cluster: the route stays
// on the shared one, and loses nothing.
func (w *environment) attaches(t *testing.T) {
	const host = "services.example.com"
	l := w.load(t, host)
	for _, timeout := range []string{"11s", "13s"} {
		if timeout == "11s" {
			w.apply(t, "policy.yaml")
		} else {
			policy := objectOf("BackendTrafficPolicy", "route")
			policy.SetAPIVersion("gateway.envoyproxy.io/v1alpha1")
			w.patch(t, policy, `{"spec":{"timeout":{"http":{"requestTimeout":"13s"}}}}`)
		}
		w.until(t, func(ctx context.Context) error {
			got, err := w.timeouts(ctx)
			if err == nil && got[host] != timeout {
				err = errors.Errorf("Envoy's timeouts are %v, want %s for %s", got, timeout, host)
			}
			return err
		})
		l.more(t, w)
	}
	all := l.end()
	for _, r := range all {
		if r.Err != nil || r.Answer != localBackend {
			t.Errorf("%q answered a request: %v", r.Answer, r.Err)
		}
	}
	t.Logf("%d requests meanwhile", len(all))
}

// judge checks a load. Requests in flight while the backend failed may be cut, unless they may be
// retried. The failure ends when it is known.
func (w *environment) judge(t *testing.T, l *traffic, failure load.Span) {
	t.Helper()
	l.more(t, w)
	all := l.end()
	oldCounts, newCounts := map[string]int{}, map[string]int{}
	for _, r := range all {
		if r.Ended.Before(failure.Began) {
			oldCounts[r.Answer]++
		} else if r.Began.After(failure.Ended) {
			newCounts[r.Answer]++
		}
		if r.Err != nil && r.host == "safe.example.com" {
			t.Errorf("a request that may be retried is lost, %s after the backend: %v", r.Began.Sub(failure.Began), r.Err)
		}
	}
	events := &load.Events{}
	events.Add(failure)
	lost, cut := events.Split(l.Failures())
	for _, f := range lost {
		t.Errorf("a request that began %s after the backend was gone is lost: %s", f.Began.Sub(failure.Began), f)
	}
	// Otherwise the test proves nothing.
	if oldCounts[localBackend] == 0 || newCounts[remoteBackend] == 0 {
		t.Errorf("want responses of %s before and of %s after, got %v and %v", localBackend, remoteBackend, oldCounts, newCounts)
	}
	t.Logf("%d of %d requests were cut; the longest response took %s", len(cut), len(all), l.Longest().Round(time.Millisecond))
}

// healthy waits until a backend is healthy in Envoy.
func (w *environment) healthy(t *testing.T, addr string) {
	t.Helper()
	want := netip.MustParseAddrPort(addr)
	err := w.Until(within(t), func(ctx context.Context) error {
		b, err := w.Admin(ctx, "/clusters?format=json")
		if err != nil {
			return err
		}
		var all struct {
			Clusters []struct {
				Hosts []struct {
					Address struct {
						Socket struct {
							Address string `json:"address"`
							Port    uint16 `json:"port_value"`
						} `json:"socket_address"`
					} `json:"address"`
					Health map[string]any `json:"health_status"`
				} `json:"host_statuses"`
			} `json:"cluster_statuses"`
		}
		if err := json.Unmarshal(b, &all); err != nil {
			return errors.Wrap(err, "cannot read Envoy's clusters")
		}
		for _, c := range all.Clusters {
			for _, h := range c.Hosts {
				a := h.Address.Socket
				if a.Address == want.Addr().String() && a.Port == want.Port() && h.Health["failed_active_health_check"] == nil && h.Health["failed_outlier_check"] == nil {
					return nil
				}
			}
		}
		return errors.Errorf("%s is not healthy in Envoy", addr)
	})
	if err != nil {
		t.Fatal(err)
	}
}
