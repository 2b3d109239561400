// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	// window is how many of the last hooks count for the failure rate, and fewest
	// how many there must be for it to say anything.
	window = 100
	fewest = 10

	// maxFailures is the share of failed hooks above which the extension is
	// degraded.
	maxFailures = 0.1

	// maxSilence is how long the source of objects may be out of touch before the
	// extension is degraded.
	maxSilence = 10 * time.Minute

	// maxGateways is how many Gateways are remembered. Those that were heard of
	// longest ago are forgotten.
	maxGateways = 1000
)

// Options of an Observer.
type Options struct {
	// Version of this build.
	Version string

	// Silence is how long the source of objects has been out of touch. Nil means
	// that it never is.
	Silence func() time.Duration

	// Waiting says what keeps the extension from knowing all objects, at the start.
	// May be nil.
	Waiting func() []string

	// Resources counts what is known, by kind. May be nil.
	Resources func() map[string]int

	// Expiry says when certificates end, by the server that shows them.
	Expiry map[string]func() (time.Time, error)

	// Gateway that the request of a hook is for, as NAMESPACE/NAME. Nil, or an empty
	// one, means that nothing tells.
	Gateway func(req any) string

	// Pages add what they have to the server of metrics and probes, beside those.
	Pages []func(mux *http.ServeMux)

	// Log may be nil.
	Log logging.Logger
}

// A hook is what is known of one kind of hook.
type hook struct {
	total, failed uint64
	last, sum     time.Duration
}

// Hooks are what was asked for one Gateway.
type Hooks struct {
	Total, Failed uint64

	// Last is when it was asked last.
	Last time.Time
}

// A translation of a Gateway.
type translation struct {
	at       time.Time
	outcomes map[string]int
}

// An Observer collects how the extension fares.
type Observer struct {
	opts     Options
	started  time.Time
	registry *prometheus.Registry
	hooks    *prometheus.HistogramVec
	failures *prometheus.CounterVec
	outcomes *prometheus.CounterVec

	mu       sync.Mutex
	state    state
	byHook   map[string]hook
	gateways map[string]translation

	// asked for Gateways, while they are remembered.
	asked map[string]Hooks

	// recent says which of the last hooks failed, and next where the next goes.
	recent []bool
	next   int
}

// NewObserver returns one that has seen nothing yet. Collectors are those of the
// parts that it is to show.
func NewObserver(o Options, cs ...prometheus.Collector) *Observer {
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	ob := &Observer{
		opts:     o,
		started:  time.Now(),
		registry: prometheus.NewRegistry(),
		hooks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tailscale_gateway_extension_hook_seconds",
			Help:    "Time to answer a hook of Envoy Gateway.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"hook"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_hook_failures_total",
			Help: "Hooks that were answered with an error. Envoy Gateway then keeps what the Gateway's Envoys have.",
		}, []string{"hook"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_outcomes_total",
			Help: "What became of rules and clusters, added up over all translations.",
		}, []string{"outcome"}),
		byHook:   map[string]hook{},
		gateways: map[string]translation{},
		asked:    map[string]Hooks{},
	}
	ob.registry.MustRegister(ob.hooks, ob.failures, ob.outcomes, stateCollector{ob})
	ob.registry.MustRegister(standard()...)
	ob.registry.MustRegister(cs...)
	return ob
}

// Metrics are all that /metrics shows.
func (o *Observer) Metrics() prometheus.Collector { return o.registry }

// Interceptor measures hooks. One that panics is answered with an error: Envoy
// Gateway waits without limit for a process that has gone.
func (o *Observer) Interceptor(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	name := path.Base(info.FullMethod)
	if path.Dir(info.FullMethod) == "/grpc.health.v1.Health" {
		return next(ctx, req)
	}
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			o.opts.Log.Info("A hook panicked", "hook", name, "panic", p, "stack", string(debug.Stack()))
			resp, err = nil, status.Errorf(codes.Internal, "hook %s panicked", name)
		}
		gateway := ""
		if o.opts.Gateway != nil {
			gateway = o.opts.Gateway(req)
		}
		o.hooked(name, gateway, time.Since(start), err)
	}()
	return next(ctx, req)
}

func (o *Observer) hooked(name, gateway string, took time.Duration, err error) {
	o.hooks.WithLabelValues(name).Observe(took.Seconds())
	failures := o.failures.WithLabelValues(name)
	if err != nil {
		failures.Inc()
		o.opts.Log.Info("A hook failed", "hook", name, "error", err)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.byHook[name]
	h.total++
	h.last = took
	h.sum += took
	if err != nil {
		h.failed++
	}
	o.byHook[name] = h
	if gateway != "" {
		o.askedFor(gateway, err != nil)
	}

	if len(o.recent) < window {
		o.recent = append(o.recent, err != nil)
		return
	}
	o.recent[o.next] = err != nil
	o.next = (o.next + 1) % window
}

// askedFor a Gateway. The lock is held.
func (o *Observer) askedFor(gateway string, failed bool) {
	of := o.asked[gateway]
	of.Total++
	if failed {
		of.Failed++
	}
	of.Last = time.Now()
	o.asked[gateway] = of
	if len(o.asked) > maxGateways {
		delete(o.asked, eldest(o.asked, func(h Hooks) time.Time { return h.Last }))
	}
}

// Hooks that were asked for a Gateway, NAMESPACE/NAME.
func (o *Observer) Hooks(gateway string) Hooks {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[gateway]
}

// eldest of what is remembered of Gateways.
func eldest[T any](of map[string]T, at func(T) time.Time) string {
	return slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b string) int {
		return cmp.Or(at(of[a]).Compare(at(of[b])), cmp.Compare(a, b))
	})
}

// Translated notes that a Gateway's configuration went through the hooks, and how many
// rules and clusters became what. The Gateway is NAMESPACE/NAME, or empty if nothing
// told which it was.
func (o *Observer) Translated(gateway string, outcomes map[string]int) {
	for name, n := range outcomes {
		o.outcomes.WithLabelValues(name).Add(float64(n))
	}
	if gateway == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gateways[gateway] = translation{at: time.Now(), outcomes: outcomes}
	if len(o.gateways) > maxGateways {
		delete(o.gateways, eldest(o.gateways, func(t translation) time.Time { return t.at }))
	}
}

// failureRate of the last hooks. The lock is held.
func (o *Observer) failureRate() float64 {
	if len(o.recent) < fewest {
		return 0
	}
	n := 0
	for _, failed := range o.recent {
		if failed {
			n++
		}
	}
	return float64(n) / float64(len(o.recent))
}
