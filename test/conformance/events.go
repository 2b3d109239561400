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

// root is the Go test that all others are parts of.
const root = "TestConformance"

// How a test ended.
type outcome string

const (
	passed outcome = "pass"
	failed outcome = "fail"
	left   outcome = "skip"
	absent outcome = "absent" // It did not run, as when a test ends before all of its parts.
)

// An end is how a test, or a part of one, ended.
type end struct {
	outcome outcome
	seconds float64
}

// ends by name: a test's is its own, a part's is below that of its test, as in
// HTTPRouteMatching/0_request_to_....
type ends map[string]end

// An event of Go's test2json, of which only what ends a test matters here.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

// parse events, and copy what the program printed to out. A program that broke off has
// tests that did not end, which is an error: their absence must not look like success.
func parse(events io.Reader, out io.Writer) (ends, error) {
	got, running, done := ends{}, map[string]bool{}, false
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
			got[name] = end{outcome: outcome(e.Action), seconds: e.Elapsed}
		}
	}
	if err := s.Err(); err != nil {
		return nil, errors.Wrap(err, "cannot read events of the tests")
	}
	if !done || len(running) > 0 {
		return nil, errors.Errorf("the tests broke off: %d did not end", len(running))
	}
	if len(got) == 0 {
		return nil, errors.New("no test ran: what they need did not come up")
	}
	return got, nil
}
