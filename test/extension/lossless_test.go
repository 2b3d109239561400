//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	localBackend  = "192.0.2.10:8000"
	remoteBackend = "192.0.2.20:10008"

	// clients is the number of parallel clients, each with a new connection for each request.
	clients = 5
	rest    = 5 * time.Millisecond
)

// A request of a load.
type request struct {
	began, ended time.Time
	// host and path of the request, and the address that answered.
	host, path, backend string
	// Protocols between client and Envoy, and between Envoy and the backend.
	spoken, behind string
	err            error
}

// A load of requests.
type load struct {
	stop func()
	done sync.WaitGroup

	mu  sync.Mutex
	all []request
}

// load sends requests to targets until it is stopped, with the same number of clients for each.
func (w *environment) load(t *testing.T, targets ...string) *load {
	t.Helper()
	ctx, stopped := t.Context(), make(chan struct{})
	l := &load{stop: sync.OnceFunc(func() { close(stopped) })}
	for i := range clients * len(targets) {
		target := targets[i%len(targets)]
		l.done.Go(func() {
			c := w.Client()
			defer c.CloseIdleConnections()
			tick := time.NewTicker(rest)
			defer tick.Stop()
			for {
				r := send(ctx, c, target)
				l.mu.Lock()
				l.all = append(l.all, r)
				l.mu.Unlock()
				select {
				case <-stopped:
					return
				case <-tick.C:
				}
			}
		})
	}
	t.Cleanup(func() { l.end() })
	l.more(t, w)
	return l
}

// more waits for many more requests.
func (l *load) more(t *testing.T, w *environment) {
	t.Helper()
	const many = 500
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.all)
	}
	enough := count() + many
	err := w.Until(within(t), func(context.Context) error {
		if n := count(); n < enough {
			return errors.Errorf("%d requests, want %d", n, enough)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// send sends a request to HOST or HOST/PATH.
func send(ctx context.Context, c *http.Client, target string) request {
	host, path, _ := strings.Cut(target, "/")
	began := time.Now()
	out, err := fetch(ctx, c, gateway+path, host)
	out.began, out.ended, out.host, out.path, out.err = began, time.Now(), host, path, err
	return out
}

// end stops the load, and returns all of its requests.
func (l *load) end() []request {
	l.stop()
	l.done.Wait()
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
		w.http[localBackend].CloseClientConnections()
		w.http[localBackend].Close()
		dead := time.Now()
		w.answers(t, "services.example.com", remoteBackend)
		w.judge(t, l, dead, dead)

		revive()
		w.answers(t, "services.example.com", localBackend)
	})
	t.Run("Dropped", func(t *testing.T) {
		w.healthy(t, remoteBackend)
		w.healthy(t, localBackend)
		l := w.load(t, "services.example.com", "safe.example.com")
		began := time.Now()
		if err := w.Drop(netip.MustParseAddr("192.0.2.10")); err != nil {
			t.Fatal(err)
		}
		w.answers(t, "services.example.com", remoteBackend)
		w.judge(t, l, began, time.Now())
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
		if r.err != nil || r.backend != localBackend {
			t.Errorf("%q answered a request: %v", r.backend, r.err)
		}
	}
	t.Logf("%d requests meanwhile", len(all))
}

// judge checks a load. Requests that began before the failure was known may be lost, unless they
// may be retried.
func (w *environment) judge(t *testing.T, l *load, failedAt, detectedAt time.Time) {
	t.Helper()
	l.more(t, w)
	lost, longest, oldCounts, newCounts := 0, time.Duration(0), map[string]int{}, map[string]int{}
	for _, r := range l.end() {
		if r.ended.Before(failedAt) {
			oldCounts[r.backend]++
		} else if r.began.After(detectedAt) {
			newCounts[r.backend]++
		}
		longest = max(longest, r.ended.Sub(r.began))
		if r.err == nil {
			continue
		}
		lost++
		switch {
		case r.host == "safe.example.com":
			t.Errorf("a request that may be retried is lost, %s after the backend: %v", r.began.Sub(failedAt), r.err)
		case r.began.After(detectedAt):
			t.Errorf("a request that began %s after the backend was gone is lost: %v", r.began.Sub(failedAt), r.err)
		}
	}
	// Otherwise the test proves nothing.
	if oldCounts[localBackend] == 0 || newCounts[remoteBackend] == 0 {
		t.Errorf("want responses of %s before and of %s after, got %v and %v", localBackend, remoteBackend, oldCounts, newCounts)
	}
	t.Logf("%d of %d requests lost, all of them in flight; the longest took %s", lost, len(l.all), longest.Round(time.Millisecond))
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
