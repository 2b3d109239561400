// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Result is one measurement.
type Result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit of Value and Baseline.
	Unit string `json:"unit"`
	// Baseline is the value of the same run that Value is compared with.
	Baseline *float64 `json:"baseline,omitempty"`
	// Ratio of Value and Baseline.
	Ratio *float64 `json:"ratio,omitempty"`
	// Goal is the maximum of Ratio, or of Value if there is no Ratio.
	Goal float64 `json:"goal"`
	// Holds reports whether the goal is met.
	Holds bool `json:"holds"`
}

// plain returns a result whose goal is a bound of its value.
func plain(name string, value float64, unit string, goal float64) Result {
	value = rounded(value)
	return Result{Name: name, Value: value, Unit: unit, Goal: goal, Holds: value <= goal}
}

// compared returns a result whose goal is a bound of its ratio to a baseline.
func compared(name string, value, baseline float64, unit string, goal float64) Result {
	ratio := rounded(value / baseline)
	value, baseline = rounded(value), rounded(baseline)
	return Result{Name: name, Value: value, Unit: unit, Baseline: &baseline, Ratio: &ratio, Goal: goal, Holds: ratio <= goal}
}

// paired returns a result of times that were taken in turns: its ratio is the median of the ratios
// of each pair, so that one outlier on either side does not change it.
func paired(name string, values, baselines []time.Duration, goal float64) Result {
	ratios := make([]float64, min(len(values), len(baselines)))
	for i := range ratios {
		ratios[i] = values[i].Seconds() / baselines[i].Seconds()
	}
	r := compared(name, milliseconds(median(values)), milliseconds(median(baselines)), "ms", goal)
	ratio := 0.0
	if len(ratios) > 0 {
		ratio = rounded(slices.Sorted(slices.Values(ratios))[len(ratios)/2])
	}
	r.Ratio, r.Holds = &ratio, len(ratios) > 0 && ratio <= goal
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// percentile returns the time within which this percentage of durations stays.
func percentile(ds []time.Duration, percent int) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	ds = slices.Sorted(slices.Values(ds))
	return ds[(len(ds)*percent+99)/100-1]
}

func printTable(w io.Writer, rs []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v, 'g', 6, 64)
	}
	lines := []string{"NAME\tVALUE\tUNIT\tBASELINE\tRATIO\tGOAL\tHOLDS"}
	for _, r := range rs {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t<= %g\t%t", r.Name, number(&r.Value), r.Unit, number(r.Baseline), number(r.Ratio), r.Goal, r.Holds))
	}
	if _, err := fmt.Fprintln(t, strings.Join(lines, "\n")); err != nil {
		return errors.Wrap(err, "cannot print results")
	}
	return errors.Wrap(t.Flush(), "cannot print results")
}

// write replaces the results of the same names in a file, and keeps the others.
func write(path string, rs []Result) error {
	var all []Result
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "cannot read earlier results")
	}
	if err == nil {
		if err := json.Unmarshal(b, &all); err != nil {
			return errors.Wrapf(err, "cannot decode earlier results in %s", path)
		}
	}
	all = slices.DeleteFunc(all, func(old Result) bool {
		return slices.ContainsFunc(rs, func(r Result) bool { return r.Name == old.Name })
	})
	all = append(all, rs...)
	if b, err = json.MarshalIndent(all, "", "  "); err != nil {
		return errors.Wrap(err, "cannot encode results")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return errors.Wrap(err, "cannot create the results' folder")
	}
	return errors.Wrap(os.WriteFile(path, append(b, '\n'), 0o644), "cannot write results")
}

// missed returns an error with the names of the goals that are not met.
func missed(rs []Result) error {
	var names []string
	for _, r := range rs {
		if !r.Holds {
			names = append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return errors.Errorf("%d of %d goals are missed: %s", len(names), len(rs), strings.Join(names, ", "))
}
