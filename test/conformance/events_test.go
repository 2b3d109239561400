// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	type want struct {
		ends ends
		log  string
		err  error
	}
	cases := map[string]struct {
		reason string
		events []string
		want   want
	}{
		"All": {
			reason: "Tests and their parts should be identified by name, and output should go to the log.",
			events: []string{
				`{"Action":"start"}`,
				`{"Action":"run","Test":"TestConformance"}`,
				`{"Action":"output","Test":"TestConformance","Output":"setting up\n"}`,
				`{"Action":"run","Test":"TestConformance/A"}`,
				`{"Action":"run","Test":"TestConformance/A/one"}`,
				`{"Action":"output","Test":"TestConformance/A/one","Output":"no\n"}`,
				`{"Action":"fail","Test":"TestConformance/A/one","Elapsed":1.5}`,
				`{"Action":"fail","Test":"TestConformance/A","Elapsed":2}`,
				`{"Action":"run","Test":"TestConformance/B"}`,
				`{"Action":"skip","Test":"TestConformance/B","Elapsed":0}`,
				`{"Action":"fail","Test":"TestConformance","Elapsed":3}`,
				`{"Action":"fail","Elapsed":3}`,
			},
			want: want{
				ends: ends{"A": {outcome: failed, seconds: 2}, "A/one": {outcome: failed, seconds: 1.5}, "B": {outcome: omitted}},
				log:  "setting up\nno\n",
			},
		},
		"ErrBrokeOff": {
			reason: "A program that ended during a test should be an error.",
			events: []string{
				`{"Action":"run","Test":"TestConformance"}`,
				`{"Action":"run","Test":"TestConformance/A"}`,
				`{"Action":"pass","Test":"TestConformance/A"}`,
				`{"Action":"run","Test":"TestConformance/B"}`,
				`{"Action":"fail"}`,
			},
			want: want{err: cmpopts.AnyError},
		},
		"ErrNothingRan": {
			reason: "A failed setup runs no tests, which is an error.",
			events: []string{`{"Action":"run","Test":"TestConformance"}`, `{"Action":"fail","Test":"TestConformance"}`},
			want:   want{err: cmpopts.AnyError},
		},
		"ErrNoEvent": {
			reason: "Other text than events should be an error.",
			events: []string{`lab: not up`},
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := &bytes.Buffer{}
			got, err := parse(strings.NewReader(strings.Join(tc.events, "\n")), log)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nparse(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.ends, got, cmp.AllowUnexported(end{})); diff != "" {
				t.Errorf("\n%s\nparse(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.log, log.String()); diff != "" {
				t.Errorf("\n%s\nparse(...): -want log, +got log:\n%s", tc.reason, diff)
			}
		})
	}
}
