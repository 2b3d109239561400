// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// root is the Go test that contains all others.
const root = "TestConformance"

// An outcome is how a test ended.
type outcome string

const (
	passed  outcome = "pass"
	failed  outcome = "fail"
	omitted outcome = "skip"
	absent  outcome = "absent" // The test did not run, as when a test ends before all of its parts.
)

// An end is the outcome of a test or of a part.
type end struct {
	outcome outcome
	seconds float64
}

// ends by name: the name of a part is below that of its test, as in
// HTTPRouteMatching/0_request_to_....
type ends map[string]end

// An event of Go's test2json, with the fields for the end of a test.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

// parse reads events, and copies the program's output to out. Tests that did not end, as after a
// crash, are an error: they must not look like successes.
func parse(events io.Reader, out io.Writer) (ends, error) {
	results, running, done := ends{}, map[string]bool{}, false
	s := bufio.NewScanner(events)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		e := event{}
		if err := json.Unmarshal(bytes.TrimSpace(s.Bytes()), &e); err != nil {
			return nil, errors.Wrapf(err, "cannot decode an event of the tests: %q", s.Text())
		}
		if e.Action == "output" {
			if _, err := io.WriteString(out, e.Output); err != nil {
				return nil, errors.Wrap(err, "cannot write the tests' log")
			}
			continue
		}
		name, ok := strings.CutPrefix(e.Test, root+"/")
		switch {
		case e.Test == root && (e.Action == "pass" || e.Action == "fail"):
			done = true
		case !ok:
		case e.Action == "run":
			running[name] = true
		case e.Action == "pass", e.Action == "fail", e.Action == "skip":
			delete(running, name)
			results[name] = end{outcome: outcome(e.Action), seconds: e.Elapsed}
		}
	}
	if err := s.Err(); err != nil {
		return nil, errors.Wrap(err, "cannot read events of the tests")
	}
	if !done || len(running) > 0 {
		return nil, errors.Errorf("the tests broke off: %d did not end", len(running))
	}
	if len(results) == 0 {
		return nil, errors.New("no test ran: their setup failed")
	}
	return results, nil
}
