// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"maps"
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
	// window is the number of hooks in the failure rate, and fewest the number below which there is
	// no rate.
	window = 100
	fewest = 10

	// maxFailures is the failure rate of hooks above which the extension is degraded.
	maxFailures = 0.1

	// maxSilence is the time for which the source of objects may be unreachable before the
	// extension is degraded.
	maxSilence = 10 * time.Minute

	// maxGateways is the number of Gateways in memory. The ones without a hook for longest are
	// dropped.
	maxGateways = 1000
)

// Options of an Observer.
type Options struct {
	// Version of this build.
	Version string

	// Silence returns the time for which the source of objects has been unreachable. Nil means that
	// it never is.
	Silence func() time.Duration

	// Waiting returns the reasons why objects are still missing at the start. May be nil.
	Waiting func() []string

	// Resources returns the number of known objects, by kind. May be nil.
	Resources func() map[string]int

	// Expiry returns the time at which a server's certificate expires, by server.
	Expiry map[string]func() (time.Time, error)

	// Gateway returns the Gateway of a hook's request, as NAMESPACE/NAME. If nil, or if the result
	// is empty, the Gateway is unknown.
	Gateway func(req any) string

	// Log may be nil.
	Log logging.Logger
}

// A hook holds the statistics of one kind of hook.
type hook struct {
	total, failed uint64
	last, sum     time.Duration
}

// Hooks counts the hooks of one Gateway.
type Hooks struct {
	Total, Failed uint64

	// Last is the time of the last hook.
	Last time.Time
}

// A translation of a Gateway.
type translation struct {
	at       time.Time
	outcomes map[string]int
}

// An Observer collects the state of the extension.
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

	// byGateway are the hooks of Gateways in memory.
	byGateway map[string]Hooks

	// recent records which of the last hooks failed, and next is the index of the next one.
	recent []bool
	next   int
}

// NewObserver returns an observer.
func NewObserver(o Options) *Observer {
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	ob := &Observer{
		opts:     o,
		started:  time.Now(),
		registry: prometheus.NewRegistry(),
		hooks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tailscale_gateway_extension_hook_duration_seconds",
			Help:    "Duration of a hook of Envoy Gateway.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"hook"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_hook_failures_total",
			Help: "Hooks that returned an error. Envoy Gateway then keeps the configuration of the Gateway's Envoys.",
		}, []string{"hook"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_outcomes_total",
			Help: "Results of all translations. " + outcomeValues,
		}, []string{"outcome"}),
		byHook:    map[string]hook{},
		gateways:  map[string]translation{},
		byGateway: map[string]Hooks{},
	}
	ob.registry.MustRegister(ob.hooks, ob.failures, ob.outcomes, stateCollector{ob})
	ob.registry.MustRegister(standard()...)
	return ob
}

// Register includes collectors in the observer's metrics.
func (o *Observer) Register(cs ...prometheus.Collector) { o.registry.MustRegister(cs...) }

// Metrics returns the collector of /metrics.
func (o *Observer) Metrics() prometheus.Collector { return o.registry }

// Interceptor measures hooks. It returns an error for a hook that panics: Envoy Gateway would wait
// for a crashed process without limit.
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
		o.countHook(gateway, err != nil)
	}

	if len(o.recent) < window {
		o.recent = append(o.recent, err != nil)
		return
	}
	o.recent[o.next] = err != nil
	o.next = (o.next + 1) % window
}

// countHook counts a hook of a Gateway. The caller holds the lock.
func (o *Observer) countHook(gateway string, failed bool) {
	hooks := o.byGateway[gateway]
	hooks.Total++
	if failed {
		hooks.Failed++
	}
	hooks.Last = time.Now()
	o.byGateway[gateway] = hooks
	if len(o.byGateway) > maxGateways {
		delete(o.byGateway, oldest(o.byGateway, func(h Hooks) time.Time { return h.Last }))
	}
}

// Hooks returns the hooks of a Gateway, NAMESPACE/NAME.
func (o *Observer) Hooks(gateway string) Hooks {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byGateway[gateway]
}

// oldest returns the Gateway with the oldest entry.
func oldest[T any](entries map[string]T, at func(T) time.Time) string {
	return slices.MinFunc(slices.Collect(maps.Keys(entries)), func(a, b string) int {
		return cmp.Or(at(entries[a]).Compare(at(entries[b])), cmp.Compare(a, b))
	})
}

// Translated records a translation of a Gateway, with the number of rules and clusters by outcome.
// The Gateway is NAMESPACE/NAME, or empty if it is unknown.
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
		delete(o.gateways, oldest(o.gateways, func(t translation) time.Time { return t.at }))
	}
}

// failureRate returns the failure rate of the last hooks. The caller holds the lock.
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
