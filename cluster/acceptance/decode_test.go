// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompareType(t *testing.T) {
	type inner struct {
		Count int       `json:"count"`
		At    time.Time `json:"at"`
	}
	type outer struct {
		inner

		Name    string            `json:"name"`
		Enabled *bool             `json:"on"`
		Tags    []string          `json:"tags"`
		Notes   map[string]string `json:"notes"`
		Any     any               `json:"any"`
	}
	type reply struct {
		Things []outer `json:"things"`
	}
	cases := map[string]struct {
		reason string
		json   string
		needed []string
		want   []string
	}{
		"Same":      {reason: "A reply that fits the type has no findings.", json: `{"things": [{"name": "a", "on": true, "tags": ["x"], "notes": {"k": "v"}, "any": 1, "count": 2, "at": "2026-01-02T03:04:05Z"}]}`},
		"Null":      {reason: "Null decodes into any type.", json: `{"things": [{"name": null, "tags": null, "on": null}]}`},
		"OtherCase": {reason: "Names of fields decode in any case.", json: `{"Things": [{"NAME": "a"}]}`},
		"Unknown":   {reason: "An unknown field is reported once.", json: `{"things": [{"new": 1}, {"new": 2}]}`, want: []string{"unknown field things[].new is a number"}},
		"Mistyped": {
			reason: "A field that cannot be decoded is reported.",
			json:   `{"things": [{"name": 1, "on": "ready", "count": 1.5, "at": "soon", "notes": {"k": 1}, "tags": "x"}]}`,
			want: []string{
				"mistyped field things[].at is a string that time.Time does not take",
				"mistyped field things[].count is a number, the product's type is int",
				"mistyped field things[].name is a number, the product's type is string",
				"mistyped field things[].notes.* is a number, the product's type is string",
				"mistyped field things[].on is a string, the product's type is bool",
				"mistyped field things[].tags is a string, the product's type is []string",
			},
		},
		"Missing": {
			reason: "A field that one element lacks is missing.", needed: []string{"things[].name", "others"},
			json: `{"things": [{"name": "a"}, {}]}`,
			want: []string{"missing field others", "missing field things[].name"},
		},
		"NoList":    {reason: "The API may omit an empty list.", needed: []string{"things[].name"}, json: `{}`},
		"EmptyList": {reason: "A list without elements lacks nothing.", needed: []string{"things[].name"}, json: `{"things": []}`},
		"Root":      {reason: "A list is not an object.", json: `[]`, want: []string{"mistyped field (root) is a list, the product's type is main.reply"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := json.Unmarshal([]byte(tc.json), &v); err != nil {
				t.Fatalf("cannot decode: %v", err)
			}
			var got []string
			for _, f := range compareType(v, reflect.TypeFor[reply](), tc.needed...) {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		bound, truth, want int
	}{
		"Below":   {reason: "A limit between powers of two is found.", bound: 1024, truth: 300, want: 300},
		"Power":   {reason: "So is a power of two.", bound: 1024, truth: 256, want: 256},
		"Bound":   {reason: "Without a limit the bound is the answer.", bound: 1000, truth: 5000, want: 1000},
		"Nothing": {reason: "Nothing may fit.", bound: 1024, truth: 0, want: 0},
		"One":     {reason: "Or one.", bound: 1024, truth: 1, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			got, err := limit(tc.bound, func(n int) (bool, error) { calls++; return n <= tc.truth, nil })
			if err != nil || got != tc.want {
				t.Errorf("%s want %d, got %d, %v", tc.reason, tc.want, got, err)
			}
			if calls > 25 {
				t.Errorf("%d questions are too many", calls)
			}
		})
	}
}
