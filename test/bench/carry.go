// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

// A direction of traffic through proxies.
type direction struct {
	name, from string
	url        func(s sidebyside.Side) string
}

func directions() []direction {
	return []direction{
		{"ingress", "tailnet", func(s sidebyside.Side) string { return s.IngressURL(service(s, 0)) }},
		{"egress", "cluster", func(s sidebyside.Side) string { return s.EgressURL(service(s, 0) + "-out") }},
	}
}

// carried holds the measurements of requests through the proxies of a side, one for each round.
type carried struct {
	// interval is the time between two responses.
	interval, p50, p99 []time.Duration

	// processor is the processor time of all proxies for one request.
	processor []time.Duration
}

// carry measures throughput, latency and processor time through proxies of both directions.
func (v *versus) carry(ctx context.Context) ([]Result, error) {
	var rs []Result
	for _, d := range directions() {
		measured, err := v.load(ctx, d, v.ours, v.theirs)
		if err != nil {
			return rs, err
		}
		row := func(metric string, unit time.Duration, name string, goal float64, series func(carried) []time.Duration) Result {
			value := func(s sidebyside.Side) float64 { return float64(median(series(measured[s.Name()]))) / float64(unit) }
			return compared("operator."+d.name+"_"+metric, value(v.ours), value(v.theirs), name, goal)
		}
		rs = append(rs,
			row("latency_p50", time.Millisecond, "ms", maxRequest, func(c carried) []time.Duration { return c.p50 }),
			row("latency_p99", time.Millisecond, "ms", maxRequest, func(c carried) []time.Duration { return c.p99 }),
			row("processor_per_request", time.Microsecond, "us", maxProcessor, func(c carried) []time.Duration { return c.processor }),
			row("time_per_request", time.Millisecond, "ms", maxRequest, func(c carried) []time.Duration { return c.interval }))
	}
	return rs, nil
}

// alike measures the latency with Kernel networking on both sides.
func (v *versus) alike(ctx context.Context) ([]Result, error) {
	progress("operator: installing the proxies of %s", v.kernel.Name())
	if err := v.kernel.Install(ctx); err != nil {
		return nil, err
	}
	if _, err := v.lab.Ingress(ctx, v.kernel, service(v.kernel, 0)); err != nil {
		return nil, err
	}
	if _, err := v.lab.Egress(ctx, v.kernel, service(v.kernel, 0)+"-out"); err != nil {
		return nil, err
	}
	var rs []Result
	for _, d := range directions() {
		measured, err := v.load(ctx, d, v.kernel, v.theirs)
		if err != nil {
			return rs, err
		}
		ms := func(s sidebyside.Side) float64 { return median(measured[s.Name()].p50).Seconds() * 1000 }
		rs = append(rs, compared("operator."+d.name+"_p50_kernel_ratio", ms(v.kernel), ms(v.theirs), "ms", maxKernel))
	}
	return rs, nil
}

// load sends requests through the proxies of the sides in turns, so that other load on the machine
// affects all of them. A first round, which does not count, lets clients and proxies find their paths.
func (v *versus) load(ctx context.Context, d direction, sides ...sidebyside.Side) (map[string]carried, error) {
	out := map[string]carried{}
	for i := range loadRounds + 1 {
		for _, s := range sides {
			start, err := v.lab.Processor(ctx, s.Proxies())
			if err != nil {
				return nil, err
			}
			r, err := v.lab.Load(ctx, d.from, d.url(s), loadWorkers, loadTime)
			if err != nil {
				return nil, err
			}
			end, err := v.lab.Processor(ctx, s.Proxies())
			if err != nil {
				return nil, err
			}
			total, byProgram := perRequest(start, end, r.Answered())
			progress("operator: round %d, %s of %s: %.0f requests a second, p50 %.1f ms, p99 %.1f ms, %d lost; processor time of each: %s",
				i, d.name, s.Name(), float64(r.Answered())/r.Seconds, r.P50*1000, r.P99*1000, r.Lost, byProgram)
			if i == 0 {
				continue
			}
			c := out[s.Name()]
			c.interval = append(c.interval, seconds(r.Seconds/float64(r.Answered())))
			c.p50, c.p99 = append(c.p50, seconds(r.P50)), append(c.p99, seconds(r.P99))
			c.processor = append(c.processor, total)
			out[s.Name()] = c
		}
	}
	return out, nil
}

// perRequest returns the processor time for each of n requests: the total, and the time by program
// in descending order. Programs without processor time are left out.
func perRequest(start, end map[string]time.Duration, requests int) (time.Duration, string) {
	var total time.Duration
	byProgram := map[string]time.Duration{}
	for program, t := range end {
		if d := (t - start[program]) / time.Duration(requests); d > 0 {
			byProgram[program] = d
			total += d
		}
	}
	programs := slices.SortedFunc(maps.Keys(byProgram), func(a, b string) int {
		return cmp.Or(cmp.Compare(byProgram[b], byProgram[a]), cmp.Compare(a, b))
	})
	output := make([]string, 0, len(programs))
	for _, p := range programs {
		output = append(output, fmt.Sprintf("%s %s", p, byProgram[p].Round(time.Microsecond)))
	}
	return total, strings.Join(output, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
