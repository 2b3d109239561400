// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const (
	// translateLimit is how long one translation and all steps before it may take, and
	// translateLimitPerRoute how much longer for each route.
	translateLimit         = 2 * time.Minute
	translateLimitPerRoute = 30 * time.Millisecond

	// liveLimit is how long an endpoint may take until it serves.
	liveLimit = 20 * time.Second

	// updatesLimit is how long all changes of Updates may take.
	updatesLimit = 2 * time.Minute

	// settled memory changes by less than this share within settleInterval.
	settled        = 0.005
	settleInterval = 2 * time.Second
	settleLimit    = time.Minute

	// translations is Envoy Gateway's own metric of the time from a new intermediate representation
	// to the snapshot for Envoy, which includes hooks.
	translations = "watchable_subscribe_duration_seconds"
	xdsRunner    = "xds"

	// hooks is the extension's metric of the time that a hook takes.
	hooks = "tailscale_gateway_extension_hook_duration_seconds"

	// updates is the extension's metric of the time that a new snapshot takes.
	updates = "tailscale_gateway_extension_index_update_duration_seconds"
)

// Translations runs this many translations in Envoy Gateway, and returns how long each took. One
// more runs before them and does not count.
func (w *Environment) Translations(ctx context.Context, n int) ([]time.Duration, error) {
	var out []time.Duration
	for i := range n + 1 {
		took, err := w.translate(ctx)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, took)
		}
	}
	return out, nil
}

// translate repeats until a translation runs alone, and returns how long it took: the metric does
// not separate two that run together.
func (w *Environment) translate(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, translateLimit+time.Duration(w.options.Routes)*translateLimitPerRoute)
	defer cancel()
	for {
		took, n, err := w.translateOnce(ctx)
		if err != nil || n == 1 {
			return took, err
		}
	}
}

// translateOnce returns the mean time of translations after a change, and their number.
func (w *Environment) translateOnce(ctx context.Context) (took time.Duration, n uint64, err error) {
	sum, count, err := w.histogram(ctx, envoyGateway, translations, xdsRunner)
	if err != nil {
		return 0, 0, err
	}
	current := redirectRoute(0)
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		return 0, 0, errors.Wrap(err, "cannot get the redirect route")
	}
	w.redirects++
	// Envoy Gateway writes the status meanwhile: an update would meet conflicts.
	change := client.MergeFrom(current.DeepCopy())
	current.Spec = redirectRoute(w.redirects).Spec
	if err := w.kube.Patch(ctx, current, change); err != nil {
		return 0, 0, errors.Wrap(err, "cannot change the redirect route")
	}
	err = w.gateway.Until(ctx, func(ctx context.Context) error {
		s, c, err := w.histogram(ctx, envoyGateway, translations, xdsRunner)
		if err != nil {
			return err
		}
		if c == count {
			return errors.New("Envoy Gateway does not translate")
		}
		n = c - count
		took = time.Duration((s - sum) / float64(n) * float64(time.Second))
		return nil
	})
	return took, n, err
}

// histogram returns sum and count of a process's histogram. A runner selects one of Envoy Gateway's
// runners.
func (w *Environment) histogram(ctx context.Context, url, name, runner string) (float64, uint64, error) {
	b, err := w.get(ctx, url+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return 0, 0, errors.Wrap(err, "cannot read metrics")
	}
	for _, m := range families[name].GetMetric() {
		if runner == "" || label(m, "runner") == runner {
			return m.GetHistogram().GetSampleSum(), m.GetHistogram().GetSampleCount(), nil
		}
	}
	return 0, 0, errors.Errorf("%s has no metric %s %s", url, name, runner)
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func (w *Environment) get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot create request for %q", url)
	}
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return nil, errors.Wrap(err, "cannot get")
	}
	b, err := io.ReadAll(rsp.Body)
	return b, errors.Join(err, rsp.Body.Close())
}

// EnvoyMemory returns the memory that Envoy has allocated, in MiB, once it has settled.
func (w *Environment) EnvoyMemory(ctx context.Context) (float64, error) {
	bytes, err := settle(ctx, func(ctx context.Context) (float64, error) {
		b, err := w.gateway.Admin(ctx, "/memory")
		if err != nil {
			return 0, err
		}
		var m struct {
			Allocated string `json:"allocated"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return 0, err
		}
		return strconv.ParseFloat(m.Allocated, 64)
	})
	return bytes / (1 << 20), errors.Wrap(err, "cannot read Envoy's memory")
}

// ExtensionMemory returns the resident memory of the extension at rest, in MB: it has settled after
// a garbage collection, which an idle Go process runs at least every two minutes.
func (w *Environment) ExtensionMemory(ctx context.Context) (float64, error) {
	kib, err := settle(ctx, func(ctx context.Context) (float64, error) {
		if _, err := w.get(ctx, "http://"+observeAddress+"/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
		return resident(w.extension.PID())
	})
	return kib * 1024 / 1e6, errors.Wrap(err, "cannot read the extension's memory")
}

// ExtensionPeak returns the largest resident memory of the extension since its start, in MB.
func (w *Environment) ExtensionPeak() (float64, error) {
	m, err := harness.MemoryOf(w.extension)
	return m.Peak * (1 << 20) / 1e6, err
}

// settle returns the value of read once it changes by less than the share settled.
func settle(ctx context.Context, read func(context.Context) (float64, error)) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	tick := time.NewTicker(settleInterval)
	defer tick.Stop()
	for last := 0.0; ; {
		current, err := read(ctx)
		if err != nil {
			return 0, err
		}
		if math.Abs(current-last) < settled*current {
			return current, nil
		}
		last = current
		select {
		case <-ctx.Done():
			return 0, errors.Wrap(ctx.Err(), "it does not settle")
		case <-tick.C:
		}
	}
}

// resident returns the resident memory of a process, in KiB.
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, errors.New("the status of the process has no resident memory")
}

// Hooks returns the mean time of the extension's answer to a translation, in milliseconds, over this many
// translations.
func (w *Environment) Hooks(ctx context.Context, n int) (float64, error) {
	url := "http://" + observeAddress
	if _, err := w.Translations(ctx, 0); err != nil {
		return 0, err
	}
	sum, count, err := w.histogram(ctx, url, hooks, "")
	if err != nil {
		return 0, err
	}
	if _, err := w.Translations(ctx, n-1); err != nil {
		return 0, err
	}
	s, c, err := w.histogram(ctx, url, hooks, "")
	if err == nil && c == count {
		err = errors.New("Envoy Gateway has called no hook")
	}
	return (s - sum) / float64(c-count) * 1000, err
}

// HeapProfile writes a profile of the extension's memory into a folder, named by the number of routes.
func (w *Environment) HeapProfile(ctx context.Context, dir string) error {
	b, err := w.get(ctx, "http://"+observeAddress+"/debug/pprof/heap?gc=1")
	if err != nil {
		return errors.Wrap(err, "cannot profile the extension")
	}
	path := filepath.Join(dir, fmt.Sprintf("extension-heap-%d.pb.gz", w.options.Routes))
	return errors.Wrap(os.WriteFile(path, b, 0o600), "cannot write a profile")
}

// Updates returns the mean time of a new snapshot of the extension's index, in milliseconds, over
// this many changes of endpoints.
func (w *Environment) Updates(ctx context.Context, n int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, updatesLimit)
	defer cancel()
	url := "http://" + observeAddress
	sum, count, err := w.histogram(ctx, url, updates, "")
	if err != nil {
		return 0, err
	}
	mean := 0.0
	for i := range n {
		if _, _, err := w.change(ctx, i); err != nil {
			return 0, err
		}
		// One at a time: the index combines changes that arrive together into one snapshot.
		err := w.gateway.Until(ctx, func(ctx context.Context) error {
			s, c, err := w.histogram(ctx, url, updates, "")
			if err != nil {
				return err
			}
			if c < count+uint64(i)+1 {
				return errors.Errorf("the extension has processed %d changes, want %d", c-count, i+1)
			}
			mean = (s - sum) / float64(c-count) * 1000
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return mean, nil
}

// change replaces the endpoints of a route's target with a new one, and returns it.
func (w *Environment) change(ctx context.Context, i int) (route int, address string, err error) {
	route = i % w.options.Routes
	// Not a recent address: Envoy keeps healthy endpoints for a while.
	address = fmt.Sprintf("192.0.2.%d", 20+i%200)
	s := Slice(w.options.target(route), firstBackend, address)
	return route, address, errors.Wrap(w.kube.Update(ctx, s), "cannot change endpoints")
}

// Live replaces the endpoint of targets this many times, one after the other, and returns for each
// the time from just before the write until the endpoint served a request.
func (w *Environment) Live(ctx context.Context, n int) ([]time.Duration, error) {
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	out := make([]time.Duration, 0, n)
	for i := range n {
		took, err := w.live(ctx, c, i)
		if err != nil {
			return nil, err
		}
		out = append(out, took)
	}
	return out, nil
}

func (w *Environment) live(ctx context.Context, c *http.Client, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	began := time.Now()
	route, address, err := w.change(ctx, i)
	if err != nil {
		return 0, err
	}
	served := ""
	target := Target(host(route), "", func(address string) error {
		served = address
		return nil
	})
	for served != address {
		if _, err := load.Get(ctx, c, target); err != nil {
			return 0, errors.Wrapf(err, "endpoint %s of route %d does not serve", address, route)
		}
	}
	return time.Since(began), nil
}

// Target returns what a request gets for a path of a host, on Envoy's listener. The check receives
// the address of the backend that answers.
func Target(host, path string, check func(address string) error) load.Target {
	return load.Target{URL: fmt.Sprintf("http://127.0.0.1:%d/%s", Listener, path), Host: host, Check: func(r load.Response) error {
		return check(r.Header.Get(AddressHeader))
	}}
}
