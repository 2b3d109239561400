// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// Names of programs in the audit log.
const (
	Provider   = "provider"
	Crossplane = "crossplane-core"
)

// programs are those that write. The function writes nothing.
var programs = []string{Provider, Crossplane}

const (
	// creators is the number of parallel creations.
	creators = 16

	// steadyLimit is how long a control plane may take until nothing changes.
	steadyLimit = 45 * time.Minute
)

// A Use is what the control plane has used.
type Use struct {
	// Processor is the processor time of each process.
	Processor map[*harness.Provider]time.Duration

	Writes Writes

	// Lists and Others are calls of Tailscale's API.
	Lists, Others int

	// Functions has the calls of the function, and how often a circuit breaker opened.
	Functions sidebyside.Counters
}

// Use returns what has been used so far. It is one interval: calls of Tailscale's API are then counted from zero.
func (c *ControlPlane) Use(ctx context.Context) (Use, error) {
	u := Use{Processor: map[*harness.Provider]time.Duration{}}
	var err error
	for _, p := range []*harness.Provider{c.Provider, c.Function, c.Crossplane} {
		if u.Processor[p], err = harness.Processor(p.Process); err != nil {
			return u, err
		}
	}
	if u.Writes, _, err = c.audit.read(); err != nil {
		return u, err
	}
	calls := c.sim.Counted()
	u.Lists, u.Others = calls.Lists, calls.Others
	c.sim.ResetCalls()
	u.Functions, err = c.counters(ctx)
	return u, err
}

// Since returns the use after an earlier one.
func (u Use) Since(earlier Use) Use {
	out := Use{Processor: map[*harness.Provider]time.Duration{}, Writes: u.Writes.Since(earlier.Writes), Lists: u.Lists, Others: u.Others}
	for p, d := range u.Processor {
		out.Processor[p] = d - earlier.Processor[p]
	}
	out.Functions = sidebyside.Counters{Opens: u.Functions.Opens - earlier.Functions.Opens, Calls: u.Functions.Calls - earlier.Functions.Calls}
	return out
}

// counters returns Crossplane's counters.
func (c *ControlPlane) counters(ctx context.Context) (sidebyside.Counters, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, http.NoBody)
	if err != nil {
		return sidebyside.Counters{}, errors.Wrap(err, "cannot create request")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return sidebyside.Counters{}, errors.Wrap(err, "cannot read Crossplane's metrics")
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return sidebyside.Counters{}, errors.Wrap(err, "cannot read Crossplane's metrics")
	}
	return sidebyside.ParseCounters(string(b))
}

// Fill creates all composites at once, and waits until all are ready and nothing has been written for a
// while. It returns how long that took, without that while, and when the last became ready.
func (c *ControlPlane) Fill(ctx context.Context, quiet time.Duration, progress func(format string, args ...any)) (steady, ready time.Duration, err error) {
	// The API server does not stop while a client watches.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	trackers := map[string]*harness.Tracker{}
	for _, kind := range kinds {
		if trackers[kind], err = c.env.Track(ctx, gatewayv1alpha1.SchemeGroupVersion.WithKind(kind)); err != nil {
			return 0, 0, err
		}
	}
	began := time.Now()
	if err := c.env.Create(ctx, creators, c.size.objects()); err != nil {
		return 0, 0, err
	}
	progress("scale: created after %s", time.Since(began).Round(time.Second))
	shown := time.Now()
	err = c.eventually(ctx, steadyLimit, "a steady control plane", func(context.Context) error {
		var errs []error
		for _, kind := range kinds {
			errs = append(errs, errors.Wrap(trackers[kind].AllReady(c.size.count(kind)), kind))
		}
		if err := errors.Join(errs...); err != nil {
			if time.Since(shown) > time.Minute {
				shown = time.Now()
				progress("scale: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			ready = 0
			return err
		}
		if ready == 0 {
			ready = time.Since(began)
			progress("scale: all are ready after %s", ready.Round(time.Second))
		}
		_, last, err := c.audit.read()
		if err == nil && time.Since(last) < quiet {
			err = errors.Errorf("the last write was %s ago", time.Since(last))
		}
		steady = last.Sub(began)
		return err
	})
	return steady, ready, err
}

// Rest returns what is used in a time without any change.
func (c *ControlPlane) Rest(ctx context.Context, d time.Duration) (Use, error) {
	start, err := c.Use(ctx)
	if err != nil {
		return start, err
	}
	if err := harness.Pause(ctx, d); err != nil {
		return start, err
	}
	if err := c.running(); err != nil {
		return start, err
	}
	end, err := c.Use(ctx)
	return end.Since(start), err
}

// Children returns the number of objects of a managed kind.
func (c *ControlPlane) Children(ctx context.Context, kind string) (int, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(harness.Kind(kind))
	err := c.env.Kube.List(ctx, l)
	return len(l.Items), errors.Wrapf(err, "cannot list %s", kind)
}
