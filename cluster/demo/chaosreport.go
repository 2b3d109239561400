// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// lostPer is of how many requests at most one may get lost through the VIP and egress.
const lostPer = 10_000

// A loss is a lost request, and what happened to its way meanwhile.
type loss struct {
	load.Failure

	Flow string `json:"flow"`
	way  way

	// Fault and Target are those of the last strike on the way that may be the cause. No fault is a loss without one.
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"`
	strike int

	// Blind reports that nobody could know of the fault yet.
	Blind bool `json:"blind,omitempty"`
}

// hits reports whether a strike is one on a flow.
func (s *strike) hits(f flow) bool {
	return slices.Contains(s.Ways, f.way) && (f.way != wayEgress || s.Cluster == "" || s.Cluster == f.client)
}

// losses returns the lost requests of a flow with their causes. A request may be lost by a fault that began before it
// ended, until everything has recovered. Of several, one of which nobody could know yet is taken as the cause, or else
// one that hit what carries requests, or else the last one.
func losses(f flowResult, strikes []strike) []loss {
	out := make([]loss, 0, len(f.report.Failures))
	for _, failure := range f.report.Failures {
		l := loss{Failure: failure, Flow: f.String(), way: f.way, strike: -1}
		for i, s := range strikes {
			blind := failure.Began.Before(s.Blind[f.way])
			if !s.hits(f.flow) || s.Began.After(failure.Ended) || (!blind && s.Recovered.Before(failure.Began)) {
				continue
			}
			if l.strike < 0 || cmp.Or(compareBool(blind, l.Blind), compareBool(s.Direct, strikes[l.strike].Direct), s.Began.Compare(strikes[l.strike].Began)) > 0 {
				l.strike, l.Fault, l.Target, l.Blind = i, s.Fault, s.Target, blind
			}
		}
		out = append(out, l)
	}
	return out
}

// compareBool compares with true as the greater value.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// noise matches what differs between failures of the same kind.
var noise = regexp.MustCompile(`"http[^"]*"|\[?[0-9a-f.]*[.:][0-9a-f.:]*\]?:\d+|"[^"]{40,}"`)

// kindOf returns the kind of an error, without addresses.
func kindOf(text string) string {
	out := noise.ReplaceAllString(text, "...")
	if len(out) > 110 {
		out = out[:110]
	}
	return strings.TrimSpace(out)
}

// A goal is what a way must reach.
type goal struct {
	name         string
	value, limit string
	holds        bool
}

// goals returns the goals of the ways, for the results with faults.
func (c *chaos) goals(all []loss) []goal {
	var out []goal
	for _, w := range ways {
		requests, lost, blind, gap := 0, 0, 0, time.Duration(0)
		for _, f := range c.struck {
			if f.way == w {
				requests += f.report.Requests
				gap = max(gap, seconds(f.report.Gap))
			}
		}
		for _, l := range all {
			if l.way != w {
				continue
			}
			lost++
			if l.Blind {
				blind++
			}
		}
		limit := requests / lostPer
		if w == wayEnvoy {
			limit = 0
		}
		out = append(out, goal{
			name:  string(w) + ": requests lost, and those while nobody could know",
			value: fmt.Sprintf("%d of %d, %d", lost, requests, blind), limit: fmt.Sprintf("at most %d", limit), holds: lost <= limit,
		})
		longest := c.longestBlind(w)
		out = append(out, goal{
			name:  string(w) + ": longest gap between two answers",
			value: gap.Round(100 * time.Millisecond).String(), limit: "the detection time, " + longest.Round(100*time.Millisecond).String(), holds: gap <= longest,
		})
	}
	return append(out, c.commonGoals()...)
}

// longestBlind returns how long nobody could know of a fault of a way, at most.
func (c *chaos) longestBlind(w way) time.Duration {
	// Envoy's own checks take this long.
	out := detection + time.Second
	for _, s := range c.strikes {
		if at := s.Blind[w]; slices.Contains(s.Ways, w) && !at.IsZero() {
			out = max(out, at.Sub(s.Began))
		}
	}
	return out
}

// commonGoals returns the goals that are of no way.
func (c *chaos) commonGoals() []goal {
	quiet, fewest := 0, -1
	for _, f := range c.quiet {
		quiet += f.report.Lost
	}
	for _, n := range c.counts() {
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	problems := 0
	for _, s := range c.strikes {
		if s.Problem != "" {
			problems++
		}
	}
	count := func(parts ...string) int {
		n := 0
		for _, f := range c.findings {
			for _, p := range parts {
				if strings.Contains(f, p) {
					n++
					break
				}
			}
		}
		return n
	}
	records, others := count(kindRecord+" ", kindMachine+" "), count(kindForeign+" ")
	none := func(name string, n int) goal {
		return goal{name: name, value: strconv.Itoa(n), limit: "0", holds: n == 0}
	}
	return []goal{
		none("requests lost without faults", quiet),
		{name: "hits of each fault on each way", value: fmt.Sprintf("at least %d", fewest), limit: fmt.Sprintf("at least %d", c.settings.Hits), holds: fewest >= c.settings.Hits},
		none("faults without a recovery", problems),
		none("records lost or changed", records),
		none("objects of others touched", others),
		none("other objects of ours missing, changed or left over", len(c.findings)-records-others),
	}
}

// A pair is a fault on a way.
type pair struct {
	fault string
	way   way
}

// counts returns how often each fault of the deck hit each way.
func (c *chaos) counts() map[pair]int {
	out := map[pair]int{}
	for _, cards := range c.deck {
		for _, k := range cards {
			for _, w := range k.ways {
				if k.common || k.way == w {
					out[pair{k.name, w}] = 0
				}
			}
		}
	}
	for _, s := range c.strikes {
		for _, w := range s.Ways {
			out[pair{s.Fault, w}]++
		}
	}
	return out
}

// print prints the tables. It returns an error if a goal was missed.
func (c *chaos) print(out io.Writer) error {
	var all []loss
	for _, f := range c.struck {
		all = append(all, losses(f, c.strikes)...)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	c.printFlows(w)
	c.printFaults(w, all)
	printErrors(w, all)
	_, _ = fmt.Fprintf(w, "\nThis machine has %d processors, and its load average was %.0f at most. One that is much greater than their number also delays probes and answers.\n", runtime.NumCPU(), c.busiest)
	missed, goals := 0, c.goals(all)
	_, _ = fmt.Fprintf(w, "\nGOAL\tFOUND\tLIMIT\t\n")
	for _, g := range goals {
		verdict := "holds"
		if !g.holds {
			verdict = "MISSED"
			missed++
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.name, g.value, g.limit, verdict)
	}
	for _, f := range c.findings {
		_, _ = fmt.Fprintf(w, "finding: %s\n", f)
	}
	for _, s := range c.strikes {
		if s.Problem != "" {
			_, _ = fmt.Fprintf(w, "no recovery: %s at %s: %s: %s\n", s.Fault, s.Began.UTC().Format(time.TimeOnly), s.Target, s.Problem)
		}
	}
	if err := w.Flush(); err != nil {
		return errors.Wrap(err, "cannot print the results")
	}
	if missed > 0 {
		return errors.Errorf("%d of %d goals were missed; --seed=%d repeats the choices", missed, len(goals), c.settings.Seed)
	}
	return nil
}

// printFlows prints the loads. An error of the writer comes with Flush.
func (c *chaos) printFlows(w io.Writer) {
	_, _ = fmt.Fprintln(w, "\nLOAD\tFAULTS\tREQUESTS\tLOST\tP50\tP99\tLONGEST\tGAP\t")
	for _, r := range []struct {
		name    string
		results []flowResult
	}{{"none", c.quiet}, {"all", c.struck}} {
		for _, f := range r.results {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", f, r.name, f.report.Requests, f.report.Lost,
				seconds(f.report.P50).Round(100*time.Microsecond), seconds(f.report.P99).Round(time.Millisecond), seconds(f.report.Longest).Round(time.Millisecond), seconds(f.report.Gap).Round(10*time.Millisecond))
		}
	}
}

// printFaults prints how often each fault hit each way, and what it cost.
func (c *chaos) printFaults(w io.Writer, all []loss) {
	_, _ = fmt.Fprintln(w, "\nFAULT\tWAY\tHITS\tLOST\tNOBODY COULD KNOW\tLONGEST OUTAGE\tRECOVERY\t")
	counts := c.counts()
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.fault, b.fault), slices.Index(ways, a.way)-slices.Index(ways, b.way))
	})
	for _, k := range keys {
		lost, blind, outages := 0, 0, map[int]load.Span{}
		for _, l := range all {
			if l.way != k.way || l.Fault != k.fault {
				continue
			}
			lost++
			if l.Blind {
				blind++
			}
			outages[l.strike] = join(outages[l.strike], load.Span{Began: l.Began, Ended: l.Ended})
		}
		var outage, recovery time.Duration
		for _, o := range outages {
			outage = max(outage, o.Ended.Sub(o.Began))
		}
		for _, s := range c.strikes {
			if s.Fault == k.fault && slices.Contains(s.Ways, k.way) {
				recovery = max(recovery, s.Recovered.Sub(s.Ended))
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t\n", k.fault, k.way, counts[k], lost, blind, outage.Round(100*time.Millisecond), recovery.Round(time.Second))
	}
	unexplained := 0
	for _, l := range all {
		if l.Fault == "" {
			unexplained++
		}
	}
	_, _ = fmt.Fprintf(w, "none\tall\t\t%d\t\t\t\t\n", unexplained)
}

// join returns the span from the beginning of the first span to the end of the last.
func join(a, b load.Span) load.Span {
	if a.Began.IsZero() || b.Began.Before(a.Began) {
		a.Began = b.Began
	}
	if b.Ended.After(a.Ended) {
		a.Ended = b.Ended
	}
	return a
}

// printErrors prints the kinds of errors of lost requests.
func printErrors(w io.Writer, all []loss) {
	type key struct {
		way  way
		kind string
	}
	counts := map[key]int{}
	for _, l := range all {
		counts[key{l.way, kindOf(l.Error)}]++
	}
	_, _ = fmt.Fprintln(w, "\nWAY\tLOST\tERROR")
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(slices.Index(ways, a.way)-slices.Index(ways, b.way), counts[b]-counts[a], cmp.Compare(a.kind, b.kind))
	}) {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", k.way, counts[k], k.kind)
	}
}

// writeLog writes all faults and lost requests to the file that the user wants.
func (c *chaos) writeLog() error {
	if c.settings.Log == "" {
		return nil
	}
	var all []loss
	for _, f := range c.struck {
		all = append(all, losses(f, c.strikes)...)
	}
	b, err := json.MarshalIndent(map[string]any{"seed": c.settings.Seed, "faults": c.strikes, "lost": all, "findings": c.findings}, "", "  ")
	if err != nil {
		return errors.Wrap(err, "cannot encode the log")
	}
	return errors.Wrap(os.WriteFile(c.settings.Log, b, 0o644), "cannot write the log") // No secrets.
}

// seconds returns a duration of a report.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
