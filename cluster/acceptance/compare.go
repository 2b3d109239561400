// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type compareCmd struct {
	First  string `arg:"" type:"existingdir" help:"Folder of a run, such as one in a real tailnet."`
	Second string `arg:"" type:"existingdir" help:"Folder of another run, such as one with the simulator."`
}

// Run prints the differences between the runs. Differences are not a failure.
func (c *compareCmd) Run(_ context.Context, out io.Writer) error {
	first, err := readRun(c.First)
	if err != nil {
		return err
	}
	second, err := readRun(c.Second)
	if err != nil {
		return err
	}
	diffs := compareRuns(first, second)
	for _, d := range diffs {
		say(out, "%s\n", d)
	}
	say(out, "%d differences between %s (-) and %s (+)\n", len(diffs), c.First, c.Second)
	return nil
}

// readRun reads the results of a run's rows.
func readRun(dir string) ([]result, error) {
	files, err := filepath.Glob(filepath.Join(dir, rowsDir, "*.json"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot list results")
	}
	if len(files) == 0 {
		return nil, errors.Errorf("%s has no results", dir)
	}
	var out []result
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read result")
		}
		var r result
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, errors.Wrapf(err, "cannot decode %s", f)
		}
		out = append(out, r)
	}
	return out, nil
}

// compareRuns returns the differences between two runs, one line each: missing rows, outcomes,
// observations, and shapes of replies. It ignores times, addresses, names and IDs.
func compareRuns(first, second []result) []string {
	var out []string
	byID := func(rs []result) map[string]result {
		m := map[string]result{}
		for _, r := range rs {
			m[r.Section+"/"+r.Name] = r
		}
		return m
	}
	a, b := byID(first), byID(second)
	for _, id := range union(a, b) {
		ra, inA := a[id]
		rb, inB := b[id]
		switch {
		case !inB:
			out = append(out, "- "+id+": only in the first")
			continue
		case !inA:
			out = append(out, "+ "+id+": only in the second")
			continue
		}
		if ra.Outcome != rb.Outcome || ra.Skip != rb.Skip {
			out = append(out, fmt.Sprintf("~ %s: %s, then %s", id, outcomeOf(ra), outcomeOf(rb)))
		}
		if ra.Outcome == outcomeSkip || rb.Outcome == outcomeSkip {
			continue
		}
		for _, k := range union(ra.Observed, rb.Observed) {
			if va, vb := ra.Observed[k], rb.Observed[k]; !reflect.DeepEqual(va, vb) {
				out = append(out, fmt.Sprintf("~ %s: %s: %s, then %s", id, k, shown(ra.Observed, k), shown(rb.Observed, k)))
			}
		}
	}
	return append(out, compareShapes(shapesOf(first), shapesOf(second))...)
}

func shown(m map[string]any, k string) string {
	v, ok := m[k]
	if !ok {
		return "nothing"
	}
	return string(mustJSON(v))
}

func outcomeOf(r result) string {
	if r.Reason == "" {
		return r.Outcome
	}
	return r.Outcome + " (" + r.Reason + ")"
}

func union[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for k := range m {
				if !yield(k) {
					return
				}
			}
		}
	}))
}

// A shape has the types at each path of replies, such as string at devices[].name.
type shape map[string]map[string]bool

// shapesOf returns the shapes of all replies, by method, kind of path and status.
func shapesOf(rs []result) map[string]shape {
	out := map[string]shape{}
	for _, r := range rs {
		for _, x := range r.Exchanges {
			if x.Status == 0 {
				continue
			}
			k := fmt.Sprintf("%s %s %d", x.Method, kindOfPath(x.URL), x.Status)
			if out[k] == nil {
				out[k] = shape{}
			}
			out[k].add("", x.Reply)
		}
	}
	return out
}

// words are the parts of the API's paths that are neither names nor IDs.
var words = strings.Fields(`api v2 oauth token token-exchange tailnet devices device keys vip-services services approved
	acl validate preview dns nameservers searchpaths preferences split-dns configuration settings contacts users webhooks rotate test
	logging network stream posture integrations organizations tailnets attributes authorized tags name key routes expire`)

// kindOfPath returns a path with * for names and IDs, and without its query.
func kindOfPath(u string) string {
	path, _, _ := strings.Cut(u, "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		// A name follows one of these, even if it looks like a word.
		named := i > 0 && slices.Contains([]string{"tailnet", "device", "webhooks", "organizations"}, parts[i-1])
		if p != "" && (named || !slices.Contains(words, p)) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// mapsOf are fields whose keys are data, not names of fields.
var mapsOf = []string{"annotations", "latency", "attributes", "expiries", "splitDNS", "customClaimRules"}

func (s shape) add(path string, v any) {
	p := cmp.Or(path, "(root)")
	if s[p] == nil {
		s[p] = map[string]bool{}
	}
	s[p][typeOf(v)] = true
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.add(path+"[]", e)
		}
	case map[string]any:
		for k, e := range v {
			last := path[strings.LastIndex(path, ".")+1:]
			if slices.Contains(mapsOf, last) || strings.ContainsAny(k, ".:/ ") {
				k = "*"
			}
			s.add(join(path, k), e)
		}
	}
}

// compareShapes returns the differences between replies to the same kind of request. It ignores the
// content of a list or an object that is empty on one side.
func compareShapes(a, b map[string]shape) []string {
	var out []string
	for _, k := range union(a, b) {
		sa, inA := a[k]
		sb, inB := b[k]
		switch {
		case !inB:
			out = append(out, "- "+k+": no such reply in the second")
		case !inA:
			out = append(out, "+ "+k+": no such reply in the first")
		default:
			for _, p := range union(sa, sb) {
				ta, tb := typesAt(sa, p), typesAt(sb, p)
				if ta == tb || unknowable(sa, p) || unknowable(sb, p) {
					continue
				}
				out = append(out, fmt.Sprintf("~ %s: %s: %s, then %s", k, p, cmp.Or(ta, "absent"), cmp.Or(tb, "absent")))
			}
		}
	}
	return out
}

func typesAt(s shape, path string) string { return strings.Join(sortedKeys(s[path]), " or ") }

// unknowable reports whether the replies have no example of a path: it is an element of an empty
// list, or a field of an object that is missing.
func unknowable(s shape, path string) bool {
	parent := strings.TrimSuffix(path, "[]")
	if parent == path {
		i := strings.LastIndex(path, ".")
		if i < 0 {
			return false
		}
		parent = path[:i]
		return s[path] == nil && (s[parent] == nil || !s[parent]["object"] || strings.HasSuffix(path, ".*"))
	}
	return s[path] == nil && (parent != "" || s["(root)"] != nil)
}
