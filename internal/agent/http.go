// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

const (
	// headerTimeout bounds how long a client can take to send a request's headers.
	headerTimeout = 5 * time.Second

	// shutdownTimeout bounds the requests that are still running when the agent ends.
	shutdownTimeout = 2 * time.Second

	// loopTimeout is how long the loop can be busy before the agent counts as hung. The loop only
	// writes small files.
	loopTimeout = 4 * time.Second

	// containerbootTimeout is less than the timeout of kubelet's probe.
	containerbootTimeout = 4 * time.Second

	// failingAfter is how long the tailscale container fails its liveness probe before it counts as
	// failing: kubelet restarts it after nine failures, ten seconds apart.
	failingAfter = time.Minute
)

// A health holds the answers to kubelet's probes.
type health struct {
	mu       sync.Mutex
	started  bool
	stopping bool
	restart  bool
	waiting  string
	unready  string

	// failed is since when the tailscale container fails its liveness probe. Zero while it responds.
	failed time.Time
}

func newHealth() *health { return &health{waiting: "Starting"} }

// setWaiting sets the message about what the agent waits for until it has started.
func (h *health) setWaiting(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = msg
}

func (h *health) set(started, stopping bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.stopping = h.started || started, stopping
}

// setUnready sets the message about why a started pod is not ready yet. Empty when it is ready.
func (h *health) setUnready(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unready = msg
}

// setRestart sets whether the tailscale container needs a restart.
func (h *health) setRestart(restart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restart = restart
}

// restarts reports whether the tailscale container needs a restart.
func (h *health) restarts() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restart
}

// setResponds sets whether the tailscale container responds to its liveness probe.
func (h *health) setResponds(at time.Time, responds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case responds:
		h.failed = time.Time{}
	case h.failed.IsZero():
		h.failed = at
	}
}

// failing reports whether kubelet is about to restart the tailscale container.
func (h *health) failing(at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restart || !h.failed.IsZero() && at.Sub(h.failed) >= failingAfter
}

// startup returns why containerboot must not start yet. Empty when it can start.
func (h *health) startup() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started {
		return ""
	}
	return h.waiting
}

// readiness returns why the pod is not ready. Empty when it is ready.
func (h *health) readiness() string {
	if msg := h.startup(); msg != "" {
		return msg
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return "Stopping"
	}
	return h.unready
}

// serve serves until ctx ends, or one of the servers fails.
func (a *Agent) serve(ctx context.Context, l, hooks net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serveHTTP(ctx, l, a.handler()) })
	g.Go(func() error { return serveHTTP(ctx, hooks, a.hooks()) })
	return g.Wait()
}

// serveHTTP serves h on l until ctx ends.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()

	select {
	case err := <-failed:
		return errors.Wrap(err, "cannot serve HTTP")
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return errors.Wrap(srv.Shutdown(sctx), "cannot stop HTTP server")
}

// handler returns the handler for kubelet's probes and metrics.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+sidecar.PathStartup, answer(a.health.startup))
	mux.HandleFunc("GET "+sidecar.PathReadiness, answer(a.health.readiness))
	mux.HandleFunc("GET "+sidecar.PathLiveness, a.liveness)
	mux.HandleFunc("GET "+sidecar.PathDrained, a.drained)
	mux.HandleFunc("GET "+sidecar.PathTailscale, a.tailscaleLiveness)
	mux.Handle("GET "+sidecar.PathMetrics, promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

// answer returns a handler that answers 200 when problem returns an empty text, and 503 with
// the problem otherwise.
func answer(problem func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if msg := problem(); msg != "" {
			http.Error(w, msg, http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	}
}

// liveness answers once the loop has taken a command.
func (a *Agent) liveness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loopTimeout)
	defer cancel()
	select {
	case a.commands <- func(*loop) {}:
		w.WriteHeader(http.StatusOK)
	case <-ctx.Done():
		http.Error(w, "Hung", http.StatusServiceUnavailable)
	}
}

// tailscaleLiveness answers kubelet's liveness probe of the tailscale container: with the answer of
// containerboot, which gets its metrics from tailscaled, unless the container needs a restart.
func (a *Agent) tailscaleLiveness(w http.ResponseWriter, r *http.Request) {
	if a.health.restarts() {
		http.Error(w, "The node cannot log in, or no host of a service is primary: tailscaled must start again", http.StatusServiceUnavailable)
		return
	}
	err := a.containerboot(r.Context())
	if r.Context().Err() == nil {
		a.health.setResponds(time.Now(), err == nil)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// containerboot returns why the tailscale container does not respond, or nil.
func (a *Agent) containerboot(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.opts.ContainerbootMetrics, http.NoBody)
	if err != nil {
		return errors.Wrap(err, "cannot create request")
	}
	c := &http.Client{Timeout: containerbootTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot reach the tailscale container")
	}
	// Tailscaled may hang before it has answered all.
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close() // It was read.
	if err != nil {
		return errors.Wrap(err, "cannot read the answer of the tailscale container")
	}
	if res.StatusCode != http.StatusOK {
		return errors.Errorf("the tailscale container answers %s", res.Status)
	}
	return nil
}
