// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCompare(t *testing.T) {
	pass, fail, skip := end{outcome: passed}, end{outcome: failed}, end{outcome: omitted}
	type want struct {
		result result
		err    string
	}
	cases := map[string]struct {
		reason   string
		baseline ends
		extended ends
		reasons  map[string]string
		some     bool
		hooks    answers
		want     want
	}{
		"Same": {
			reason:   "Equal and successful tests should give no error.",
			baseline: ends{"B": pass, "A": skip, "B/one": pass},
			extended: ends{"A": skip, "B": pass, "B/one": pass},
			hooks:    answers{Total: 1},
			want: want{result: result{Tests: []row{
				{Name: "A", Baseline: omitted, Extended: omitted},
				{Name: "B", Baseline: passed, Extended: passed},
			}}},
		},
		"NeverAsked": {
			reason:   "A run without answers of the extension should be an error.",
			baseline: ends{"A": pass},
			extended: ends{"A": pass},
			want: want{
				result: result{Tests: []row{{Name: "A", Baseline: passed, Extended: passed}}},
				err:    "the extension answered no hook: the second run did not use it",
			},
		},
		"HookFailed": {
			reason:   "A hook with an error blocks changes of Envoys, so it should be an error.",
			baseline: ends{"A": pass},
			extended: ends{"A": pass},
			hooks:    answers{Total: 2, Failed: 1},
			want: want{
				result: result{Tests: []row{{Name: "A", Baseline: passed, Extended: passed}}},
				err:    "the extension answered 1 hooks with an error",
			},
		},
		"Worse": {
			reason:   "A failure with the extension only should be a difference, for a part and its test.",
			baseline: ends{"A": pass, "A/one": pass},
			extended: ends{"A": fail, "A/one": fail},
			hooks:    answers{Total: 1},
			want: want{
				result: result{
					Tests:       []row{{Name: "A", Baseline: passed, Extended: failed}},
					Differences: []row{{Name: "A", Baseline: passed, Extended: failed}, {Name: "A/one", Baseline: passed, Extended: failed}},
				},
				err: "2 tests and parts of tests end differently with the extension",
			},
		},
		"KnownButWorse": {
			reason:   "A known failure should be a difference when it fails with the extension only.",
			baseline: ends{"A": pass},
			extended: ends{"A": fail},
			reasons:  map[string]string{"A": "because"},
			hooks:    answers{Total: 1},
			want: want{
				result: result{
					Tests:       []row{{Name: "A", Baseline: passed, Extended: failed, Reason: "because"}},
					Differences: []row{{Name: "A", Baseline: passed, Extended: failed, Reason: "because"}},
				},
				err: "1 tests and parts of tests end differently with the extension",
			},
		},
		"OtherPart": {
			reason:   "Two failures of one test should differ by its parts.",
			baseline: ends{"A": fail, "A/one": fail},
			extended: ends{"A": fail, "A/one": pass, "A/two": fail},
			reasons:  map[string]string{"A": "because"},
			hooks:    answers{Total: 1},
			want: want{
				result: result{
					Tests:       []row{{Name: "A", Baseline: failed, Extended: failed, Reason: "because"}},
					Differences: []row{{Name: "A/one", Baseline: failed, Extended: passed}, {Name: "A/two", Baseline: absent, Extended: failed}},
					Expected:    []row{{Name: "A", Baseline: failed, Extended: failed, Reason: "because"}},
				},
				err: "2 tests and parts of tests end differently with the extension",
			},
		},
		"FailsInBoth": {
			reason:   "A failure in both runs should need one reason for the test.",
			baseline: ends{"A": fail, "A/one": fail},
			extended: ends{"A": fail, "A/one": fail},
			hooks:    answers{Total: 1},
			want: want{
				result: result{
					Tests:    []row{{Name: "A", Baseline: failed, Extended: failed}},
					Failures: []row{{Name: "A", Baseline: failed, Extended: failed}},
				},
				err: "1 tests fail in both runs for no known reason",
			},
		},
		"Stale": {
			reason:   "A known failure that passes should be reported.",
			baseline: ends{"A": pass},
			extended: ends{"A": pass},
			reasons:  map[string]string{"A": "because", "Gone": "because"},
			hooks:    answers{Total: 1},
			want: want{
				result: result{
					Tests: []row{{Name: "A", Baseline: passed, Extended: passed, Reason: "because"}},
					Stale: []string{"A", "Gone"},
				},
				err: "known.yaml names tests that do not fail: A, Gone",
			},
		},
		"Some": {
			reason:   "Tests outside of a selection should not count as missing.",
			baseline: ends{"A": pass, "B": skip},
			extended: ends{"A": pass, "B": skip},
			reasons:  map[string]string{"B": "because"},
			some:     true,
			hooks:    answers{Total: 1},
			want: want{result: result{Tests: []row{
				{Name: "A", Baseline: passed, Extended: passed},
				{Name: "B", Baseline: omitted, Extended: omitted, Reason: "because"},
			}}},
		},
		"NonePassed": {
			reason:   "Runs without a passed test should be an error.",
			baseline: ends{"A": skip},
			extended: ends{"A": skip},
			hooks:    answers{Total: 1},
			want: want{
				result: result{Tests: []row{{Name: "A", Baseline: omitted, Extended: omitted}}},
				err:    "no test passed",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := compare(tc.baseline, tc.extended, tc.reasons, tc.some)
			if diff := cmp.Diff(tc.want.result, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\ncompare(...): -want, +got:\n%s", tc.reason, diff)
			}
			got.Hooks = tc.hooks
			message := ""
			if err := got.verdict(); err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.want.err, message); diff != "" {
				t.Errorf("\n%s\nverdict(): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	r := compare(
		ends{"A": {outcome: passed}, "B": {outcome: failed}, "C": {outcome: failed}},
		ends{"A": {outcome: failed}, "B": {outcome: failed}, "C": {outcome: failed}},
		map[string]string{"C": "because"}, false)
	r.Hooks.Total = 7
	out := &bytes.Buffer{}
	if err := r.print(out); err != nil {
		t.Fatal(err)
	}
	want := `
BOTH RUNS                          TESTS
passed                             0
failed                             2
not supported, or left out         0
differ, parts of tests too         1
hooks that the extension answered  7
of them with an error              0

DIFFERENCES  WITHOUT US  WITH US  REASON
A            pass        fail     

FAIL IN BOTH  WITHOUT US  WITH US  REASON
B             fail        fail     

FAIL IN BOTH, AS IS KNOWN  WITHOUT US  WITH US  REASON
C                          fail        fail     because
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("print(...): -want, +got:\n%s", diff)
	}
}

func TestReadKnown(t *testing.T) {
	type want struct {
		reasons map[string]string
		err     error
	}
	cases := map[string]struct {
		reason string
		body   string
		want   want
	}{
		"Reasons":      {reason: "Each name has a reason.", body: "A: because\n", want: want{reasons: map[string]string{"A": "because"}}},
		"None":         {reason: "The file may have no names.", body: "# Nothing\n{}\n", want: want{reasons: map[string]string{}}},
		"ErrNoReason":  {reason: "A name without a reason is an error.", body: "A:\n", want: want{err: cmpopts.AnyError}},
		"ErrMalformed": {reason: "A list is not a map of reasons.", body: "- A\n", want: want{err: cmpopts.AnyError}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known.yaml")
			if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readKnown(file)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nreadKnown(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.reasons, got); diff != "" {
				t.Errorf("\n%s\nreadKnown(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKnown checks that the tree's file is readable.
func TestKnown(t *testing.T) {
	if _, err := readKnown("known.yaml"); err != nil {
		t.Error(err)
	}
}

func TestAdd(t *testing.T) {
	sum := answers{Total: 1}
	for _, report := range []string{
		`{"version":"v1","hooks":{"PostTranslateModify":{"total":41,"successful":40,"failed":1}}}`,
		`{"version":"v1","hooks":{}}`,
	} {
		if err := sum.add([]byte(report)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(answers{Total: 42, Failed: 1}, sum); diff != "" {
		t.Errorf("add(...): -want, +got:\n%s", diff)
	}
	if err := sum.add([]byte("# TYPE a counter")); err == nil {
		t.Error("add(...): want an error for text that is no report")
	}
}

func TestSuiteFlags(t *testing.T) {
	flags := suiteFlags("report.yaml", "p", "v1", "")
	for _, want := range []string{
		"-skip-tests=GatewayInfrastructure",
		"-report-output=report.yaml",
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("suiteFlags(...): no %s in %v", want, flags)
		}
	}
	for _, f := range []string{"Mesh", "MeshConsumerRoute", "GatewayInfrastructurePropagation", "GatewayHTTPSListenerDetectMisdirectedRequests"} {
		if !slices.Contains(exempt(), f) {
			t.Errorf("exempt(): no %s in %v", f, exempt())
		}
	}
	if flags := suiteFlags("report.yaml", "p", "v1", "GatewayInfrastructure"); slices.Contains(flags, "-skip-tests=GatewayInfrastructure") {
		t.Errorf("suiteFlags(...): a selected test is left out: %v", flags)
	}
}
