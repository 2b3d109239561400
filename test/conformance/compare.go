// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A row is one test, or a part of one, in both runs.
type row struct {
	Name           string  `json:"name"`
	Baseline       outcome `json:"without"`
	Extended       outcome `json:"with"`
	WithoutSeconds float64 `json:"withoutSeconds"`
	WithSeconds    float64 `json:"withSeconds"`
	// Reason why it may fail in both, from known.yaml.
	Reason string `json:"reason,omitempty"`
}

// A result compares both runs.
type result struct {
	// Version of the extension.
	Version string `json:"version"`
	// Hooks of the run with the extension.
	Hooks answers `json:"hooks"`
	// Tests, without their parts, by name.
	Tests []row `json:"tests"`
	// Differences are the tests and parts that ended differently.
	Differences []row `json:"differences"`
	// Failures are the tests that fail in both without a known reason.
	Failures []row `json:"failures"`
	// Expected are the known failures, with their reasons.
	Expected []row `json:"known"`
	// Stale are names in known.yaml that fail in neither.
	Stale []string `json:"stale"`
}

// Answers are the numbers of Envoy Gateway's hooks that the extension has answered.
type answers struct {
	Total  int `json:"total"`
	Failed int `json:"failed"`
}

// add adds the report of one pod of the extension.
func (a *answers) add(report []byte) error {
	r := struct {
		Hooks map[string]answers `json:"hooks"`
	}{}
	if err := json.Unmarshal(report, &r); err != nil {
		return errors.Wrap(err, "cannot decode the extension's report")
	}
	for _, h := range r.Hooks {
		a.Total += h.Total
		a.Failed += h.Failed
	}
	return nil
}

// readKnown returns the reasons of tests that may fail in both runs, by name.
func readKnown(file string) (map[string]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read known failures")
	}
	reasons := map[string]string{}
	if err := yaml.UnmarshalStrict(b, &reasons); err != nil {
		return nil, errors.Wrap(err, "cannot decode known failures")
	}
	for name, reason := range reasons {
		if reason == "" {
			return nil, errors.Errorf("known failure %q has no reason", name)
		}
	}
	return reasons, nil
}

// compare compares both runs. If only some tests ran, it ignores known failures of others.
func compare(baseline, extended ends, reasons map[string]string, some bool) result {
	all := maps.Clone(baseline)
	maps.Copy(all, extended)
	r := result{Tests: []row{}, Differences: []row{}, Failures: []row{}, Expected: []row{}, Stale: []string{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w := row{
			Name: name, Baseline: of(baseline, name), Extended: of(extended, name),
			WithoutSeconds: baseline[name].seconds, WithSeconds: extended[name].seconds,
		}
		part := strings.Contains(name, "/")
		if !part {
			w.Reason = reasons[name]
			r.Tests = append(r.Tests, w)
		}
		switch {
		case w.Baseline != w.Extended:
			r.Differences = append(r.Differences, w)
		case part || w.Extended != failed:
		case w.Reason != "":
			r.Expected = append(r.Expected, w)
		default:
			r.Failures = append(r.Failures, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !some && of(baseline, name) != failed && of(extended, name) != failed {
			r.Stale = append(r.Stale, name)
		}
	}
	return r
}

func of(e ends, name string) outcome {
	if entry, ok := e[name]; ok {
		return entry.outcome
	}
	return absent
}

// count returns the number of tests with this outcome in both runs.
func (r result) count(o outcome) int {
	n := 0
	for _, t := range r.Tests {
		if t.Baseline == o && t.Extended == o {
			n++
		}
	}
	return n
}

// verdict returns an error unless both runs agree, and each failure has a known reason.
func (r result) verdict() error {
	switch {
	case r.Hooks.Total == 0:
		return errors.New("the extension answered no hook: the second run did not use it")
	case r.Hooks.Failed > 0:
		return errors.Errorf("the extension answered %d hooks with an error", r.Hooks.Failed)
	case len(r.Differences) > 0:
		return errors.Errorf("%d tests and parts of tests end differently with the extension", len(r.Differences))
	case len(r.Failures) > 0:
		return errors.Errorf("%d tests fail in both runs for no known reason", len(r.Failures))
	case len(r.Stale) > 0:
		return errors.Errorf("known.yaml names tests that do not fail: %s", strings.Join(r.Stale, ", "))
	case r.count(passed) == 0:
		return errors.New("no test passed")
	}
	return nil
}

// print writes the numbers, and all rows that need attention.
func (r result) print(dst io.Writer) error {
	t := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	lines := []string{
		"\nBOTH RUNS\tTESTS",
		fmt.Sprintf("passed\t%d", r.count(passed)),
		fmt.Sprintf("failed\t%d", r.count(failed)),
		fmt.Sprintf("not supported, or left out\t%d", r.count(omitted)),
		fmt.Sprintf("differ, parts of tests too\t%d", len(r.Differences)),
		fmt.Sprintf("hooks that the extension answered\t%d", r.Hooks.Total),
		fmt.Sprintf("of them with an error\t%d", r.Hooks.Failed),
	}
	for _, part := range []struct {
		title string
		rows  []row
	}{{"DIFFERENCES", r.Differences}, {"FAIL IN BOTH", r.Failures}, {"FAIL IN BOTH, AS IS KNOWN", r.Expected}} {
		if len(part.rows) == 0 {
			continue
		}
		lines = append(lines, "\n"+part.title+"\tWITHOUT US\tWITH US\tREASON")
		for _, w := range part.rows {
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s", w.Name, w.Baseline, w.Extended, w.Reason))
		}
	}
	if _, err := fmt.Fprintln(t, strings.Join(lines, "\n")); err != nil {
		return errors.Wrap(err, "cannot print results")
	}
	return errors.Wrap(t.Flush(), "cannot print results")
}

func (r result) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return errors.Wrap(err, "cannot encode results")
	}
	return errors.Wrap(os.WriteFile(file, append(b, '\n'), 0o644), "cannot write results")
}
