// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// A Path is one way of requests through the installation.
type Path struct {
	Name string

	// KeepAlive is for connections that stay open: a connection ends with the proxy that it passes.
	// Otherwise each request has a new one.
	KeepAlive bool

	// Workers is the maximum number of open connections.
	Workers int
}

// A Row holds the results of a path in a phase.
type Row struct {
	Phase, Path string

	// Requests, and those of them without a response: Lost ones that nothing excuses, and Cut ones. A
	// request on a new connection is cut if control moved the service's addresses while it was in
	// flight, and a request on a kept connection if its proxy was replaced.
	Requests, Lost, Cut int

	// Allowed is the maximum of Cut.
	Allowed int

	// Gap is the longest time between two responses.
	Gap, Duration time.Duration

	// Errors of lost requests.
	Errors []string
}

// cutByMove is how many requests on new connections each move of a service's addresses may cut: the
// drain benchmark has the same limit at a higher rate.
const cutByMove = 1

// Judge returns the row of a load that ran while so many proxies of its path were replaced. Moves
// may be nil if the path has no Tailscale Service.
func (p Path) Judge(phase string, r load.Report, moves *load.Events, replaced int) Row {
	if moves == nil {
		moves = &load.Events{}
	}
	row := Row{
		Phase: phase, Path: p.Name, Requests: r.Requests,
		Gap: time.Duration(r.Gap * float64(time.Second)), Duration: time.Duration(r.Seconds * float64(time.Second)),
	}
	lost, cut := moves.Split(r.Failures)
	row.Allowed = cutByMove * moves.Count()
	if p.KeepAlive {
		// All connections may pass the proxy that is replaced, and move back later.
		row.Allowed = p.Workers * (replaced + moves.Count())
		lost, cut = nil, r.Failures
		if len(cut) > row.Allowed {
			cut, lost = cut[:row.Allowed], cut[row.Allowed:]
		}
	}
	// A report lists only the first failures.
	row.Lost, row.Cut = len(lost)+r.Lost-len(r.Failures), len(cut)
	for _, f := range lost {
		row.Errors = append(row.Errors, f.String())
	}
	return row
}

// Problems returns what is wrong with a row: lost requests, too many cut ones, or none at all.
func (r Row) Problems() []string {
	var out []string
	name := r.Phase + ", " + r.Path
	if r.Requests == 0 {
		out = append(out, name+": no request was sent")
	}
	if r.Lost > 0 {
		out = append(out, fmt.Sprintf("%s: %d of %d requests were lost: %s", name, r.Lost, r.Requests, strings.Join(r.Errors[:min(len(r.Errors), 10)], "; ")))
	}
	if r.Cut > r.Allowed {
		out = append(out, fmt.Sprintf("%s: %d of %d requests were cut, more than %d", name, r.Cut, r.Requests, r.Allowed))
	}
	return out
}

// Table returns rows as aligned columns.
func Table(rows []Row) string {
	b := &strings.Builder{}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	lines := []string{"PHASE\tPATH\tREQUESTS\tLOST\tCUT\tALLOWED\tLONGEST GAP\tDURATION"}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s", r.Phase, r.Path, r.Requests, r.Lost, r.Cut, r.Allowed, r.Gap.Round(time.Millisecond), r.Duration.Round(time.Second)))
	}
	fmt.Fprintln(t, strings.Join(lines, "\n")) // A Builder takes all writes.
	_ = t.Flush()
	return b.String()
}
