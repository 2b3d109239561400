// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// The names of samples. The first five are of the extension's last replica, which does not end
// after the first third of the run.
const (
	RSS           = "rss"
	Heap          = "heap"
	Goroutines    = "goroutines"
	Files         = "fd"
	Streams       = "streams"
	EnvoyMemory   = "envoy_memory"
	EnvoyClusters = "envoy_clusters"

	// hooks is the number of hooks that the replica has answered.
	hooks = "hooks"
)

// hookMetric is the histogram of the time of hooks.
const hookMetric = "tailscale_gateway_extension_hook_duration_seconds"

// heapAlive matches the size of the heap in its profile.
var heapAlive = regexp.MustCompile(`# HeapAlloc = ([0-9]+)`)

// A sample has all values at a time.
type sample struct {
	at     time.Time
	values map[string]float64
}

// sample takes a sample. It fails while one of the processes is away.
func (w *Environment) sample(ctx context.Context) (sample, error) {
	s := sample{at: time.Now(), values: map[string]float64{}}
	r := w.replicas[len(w.replicas)-1]
	// Read the heap first, which collects garbage, so that the resident memory is minimal.
	heap, err := r.heap(ctx, "&debug=1")
	if err != nil {
		return s, err
	}
	m := heapAlive.FindSubmatch(heap)
	if m == nil {
		return s, errors.New("the profile of the heap has no size")
	}
	if s.values[Heap], err = strconv.ParseFloat(string(m[1]), 64); err != nil {
		return s, errors.Wrap(err, "cannot read the heap's size")
	}
	if err := w.sampleMetrics(ctx, r, s.values); err != nil {
		return s, err
	}
	return s, w.sampleEnvoy(ctx, s.values)
}

func (w *Environment) sampleMetrics(ctx context.Context, r *replica, values map[string]float64) error {
	b, err := r.get(ctx, "/metrics", "")
	if err != nil {
		return err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return errors.Wrap(err, "cannot read metrics")
	}
	for name, key := range map[string]string{
		"process_resident_memory_bytes": RSS,
		"go_goroutines":                 Goroutines,
		"process_open_fds":              Files,
		"tailscale_gateway_eds_streams": Streams,
	} {
		all := families[name].GetMetric()
		if len(all) != 1 {
			return errors.Errorf("the extension has no metric %s", name)
		}
		values[key] = all[0].GetGauge().GetValue()
	}
	values[hooks] = 0
	for _, m := range families[hookMetric].GetMetric() {
		values[hooks] += float64(m.GetHistogram().GetSampleCount())
	}
	return nil
}

func (w *Environment) sampleEnvoy(ctx context.Context, values map[string]float64) error {
	b, err := w.gateway.Admin(ctx, "/memory")
	if err != nil {
		return errors.Wrap(err, "cannot read Envoy's memory")
	}
	var m struct {
		Allocated string `json:"allocated"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return errors.Wrap(err, "cannot read Envoy's memory")
	}
	if values[EnvoyMemory], err = strconv.ParseFloat(m.Allocated, 64); err != nil {
		return errors.Wrap(err, "cannot read Envoy's memory")
	}
	if b, err = w.gateway.Admin(ctx, "/stats?filter=^cluster_manager.active_clusters$"); err != nil {
		return errors.Wrap(err, "cannot read Envoy's clusters")
	}
	_, n, _ := strings.Cut(strings.TrimSpace(string(b)), ": ")
	values[EnvoyClusters], err = strconv.ParseFloat(n, 64)
	return errors.Wrap(err, "cannot count Envoy's clusters")
}

// A Trend of a value over a part of the run.
type Trend struct {
	// First and Last value.
	First, Last float64
	// Growth in percent of the median over a time as long as the whole run. It is the median of the
	// growth between each two comparable samples, so that a few outliers do not change it.
	Growth float64
}

// busy reports for each sample whether Envoy Gateway has called hooks of the replica since the
// previous sample. Their messages are much of the live memory, and the last failure decides which
// replica gets hooks: samples with hooks are comparable only with samples with hooks.
func busy(samples []sample) []bool {
	out := make([]bool, len(samples))
	for i := range samples {
		out[i] = i > 0 && samples[i].values[hooks] > samples[i-1].values[hooks]
	}
	return out
}

// similarStreams is the part by which the numbers of streams of two comparable samples may differ.
// A stream keeps buffers and a copy of an endpoint list, and an outage ends streams, so memory with
// half of the streams is about half.
const similarStreams = 0.1

// comparable reports whether two samples have about the same number of streams of Envoy.
func (s sample) comparable(other sample) bool {
	a, b := s.values[Streams], other.values[Streams]
	return max(a, b)-min(a, b) <= similarStreams*max(a, b)
}

// trend returns the trend of a value since a time, of samples with streams of Envoy, because the
// value without streams differs. It compares only samples with equal activity and about the same
// number of streams.
func trend(samples []sample, metric string, start time.Time, window time.Duration) (Trend, error) {
	counts := func(s sample) bool { return !s.at.Before(start) && s.values[Streams] > 0 }
	activity := busy(samples)
	var values, slopes []float64
	for i, s := range samples {
		if !counts(s) {
			continue
		}
		values = append(values, s.values[metric])
		for j, previous := range samples[:i] {
			if counts(previous) && activity[i] == activity[j] && s.comparable(previous) {
				slopes = append(slopes, (s.values[metric]-previous.values[metric])/s.at.Sub(previous.at).Seconds())
			}
		}
	}
	if len(slopes) == 0 {
		return Trend{}, errors.Errorf("there are %d samples of %s, too few for a trend", len(values), metric)
	}
	t := Trend{First: values[0], Last: values[len(values)-1]}
	if m := middle(values); m != 0 {
		t.Growth = 100 * middle(slopes) * window.Seconds() / m
	}
	return t, nil
}

// middle returns the median.
func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// String returns the memory of a sample in a readable form.
func (s sample) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("resident %.1f MiB, heap %.1f MiB, %.0f goroutines, %.0f files, %.0f streams, %.0f hooks so far; Envoy %.1f MiB, %.0f clusters",
		s.values[RSS]/mib, s.values[Heap]/mib, s.values[Goroutines], s.values[Files], s.values[Streams], s.values[hooks], s.values[EnvoyMemory]/mib, s.values[EnvoyClusters])
}
