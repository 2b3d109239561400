// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// headerTimeout is the time that a client has to send a request's headers.
	headerTimeout = 5 * time.Second

	// shutdownTimeout is the time for requests that still run at shutdown.
	shutdownTimeout = 2 * time.Second

	contentType = "Content-Type"
	mediaJSON   = "application/json"
	mediaText   = "text/plain; charset=utf-8"
)

// Conditions in /health.
const (
	statusStarting = "Starting"
	statusServing  = "Serving"
	statusDegraded = "Degraded"
	statusStopping = "Stopping"
)

// Handler returns the handler of metrics, probes and pages. profiles enables profiles of the
// process, which reveal its memory. Each page registers further handlers.
func (o *Observer) Handler(profiles bool, pages ...func(*http.ServeMux)) http.Handler {
	mux := http.NewServeMux()
	prom := promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), mediaJSON) {
			o.writeJSON(w, http.StatusOK, o.metricsReport())
			return
		}
		prom.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		code := http.StatusOK
		if o.unready() != "" {
			code = http.StatusServiceUnavailable
		}
		o.writeJSON(w, code, o.healthReport())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { o.writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /ready", o.ready)
	for _, register := range pages {
		register(mux)
	}
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// Run serves the handler until ctx ends.
func Run(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
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

// ready answers 503 while the replica should get no calls, and otherwise lists degraded parts.
func (o *Observer) ready(w http.ResponseWriter, _ *http.Request) {
	if msg := o.unready(); msg != "" {
		o.writeText(w, http.StatusServiceUnavailable, msg)
		return
	}
	if d := o.degraded(); len(d) > 0 {
		o.writeText(w, http.StatusOK, statusDegraded+": "+strings.Join(d, "; "))
		return
	}
	o.writeText(w, http.StatusOK, "ok")
}

// A metricsReport is the JSON form of /metrics.
type metricsReport struct {
	Version       string                   `json:"version"`
	UptimeSeconds float64                  `json:"uptimeSeconds"`
	Hooks         map[string]hookReport    `json:"hooks"`
	Gateways      map[string]gatewayReport `json:"gateways"`
	Resources     map[string]int           `json:"resources,omitempty"`
}

type hookReport struct {
	Total                  uint64  `json:"total"`
	Successful             uint64  `json:"successful"`
	Failed                 uint64  `json:"failed"`
	LastDurationSeconds    float64 `json:"lastDurationSeconds"`
	AverageDurationSeconds float64 `json:"averageDurationSeconds"`
}

type gatewayReport struct {
	LastHook time.Time      `json:"lastHook"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
}

func (o *Observer) metricsReport() metricsReport {
	out := metricsReport{
		Version:       o.opts.Version,
		UptimeSeconds: time.Since(o.started).Seconds(),
		Hooks:         map[string]hookReport{},
		Gateways:      map[string]gatewayReport{},
	}
	if o.opts.Resources != nil {
		out.Resources = o.opts.Resources()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, h := range o.byHook {
		out.Hooks[name] = hookReport{
			Total:                  h.total,
			Successful:             h.total - h.failed,
			Failed:                 h.failed,
			LastDurationSeconds:    h.last.Seconds(),
			AverageDurationSeconds: h.sum.Seconds() / float64(h.total),
		}
	}
	for name, t := range o.gateways {
		out.Gateways[name] = gatewayReport{LastHook: t.at.UTC(), Outcomes: t.outcomes}
	}
	return out
}

// A healthReport is the body of /health.
type healthReport struct {
	Status   string   `json:"status"`
	Version  string   `json:"version"`
	Problems []string `json:"problems,omitempty"`
}

func (o *Observer) healthReport() healthReport {
	out := healthReport{Version: o.opts.Version, Problems: o.degraded()}
	if msg := o.unready(); msg != "" {
		out.Problems = append([]string{msg}, out.Problems...)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.state == starting:
		out.Status = statusStarting
	case o.state == stopping:
		out.Status = statusStopping
	case len(out.Problems) > 0:
		out.Status = statusDegraded
	default:
		out.Status = statusServing
	}
	return out
}

func (o *Observer) writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	o.write(w, code, mediaJSON, string(b))
}

func (o *Observer) writeText(w http.ResponseWriter, code int, text string) {
	o.write(w, code, mediaText, text)
}

func (o *Observer) write(w http.ResponseWriter, code int, media, text string) {
	w.Header().Set(contentType, media)
	w.WriteHeader(code)
	if _, err := w.Write([]byte(text + "\n")); err != nil {
		// The client has closed the connection.
		o.opts.Log.Debug("Cannot answer", "error", err)
	}
}
