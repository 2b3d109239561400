// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   string
	}{
		"UnknownFlag":  {reason: "A flag that does not exist is a wrong command line.", args: []string{"--nonsense"}, want: "unknown flag"},
		"NoCredential": {reason: "A run needs a credential.", want: "no credential"},
		"TwoCredentials": {
			reason: "Two credentials are ambiguous.", want: "both set",
			env: map[string]string{"TS_CLIENT_ID": "id", "TS_CLIENT_SECRET": "a", "TS_ID_TOKEN": "b"},
		},
		"ForeignPrefix": {reason: "A prefix that runs do not have may match the objects of others.", args: []string{"--prefix=production"}, want: "--prefix"},
		"LongerPrefix":  {reason: "Names of a run with a shorter prefix would match, too.", args: []string{"--prefix=tsgw-acc-a-b"}, want: "--prefix"},
		"BarePrefix":    {reason: "The common beginning of all prefixes is not the prefix of a run.", args: []string{"--prefix=tsgw-acc-"}, want: "--prefix"},
		"YesToNothing":  {reason: "Without --prefix there is no list to confirm.", args: []string{"--cleanup", "--yes"}, env: map[string]string{"TS_API_KEY": "k"}, want: "--yes needs"},
		"BadExpression": {reason: "The expression must compile.", args: []string{"--only=("}, want: "--only"},
		"BadURL":        {reason: "The API's address is a URL.", args: []string{"--api-url=api.tailscale.com"}, want: "--api-url"},
		"NoRow":         {reason: "An expression that matches no row is an error.", args: []string{"--only=nothing"}, env: map[string]string{"TS_API_KEY": "k"}, want: "no row matches"},
		"NoLedger":      {reason: "Without a ledger, the objects to remove are unknown.", args: []string{"--cleanup"}, env: map[string]string{"TS_API_KEY": "k"}, want: "no ledger"},
		"CompareNothing": {
			reason: "A folder that does not exist has no results.", args: []string{"compare", "does-not-exist", "neither"}, want: "does-not-exist",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, v := range credentialVars {
				t.Setenv(v, "")
			}
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			args := tc.args
			if len(args) == 0 || args[0] != "compare" {
				args = append(args, "--out="+t.TempDir())
			}
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			if got := command(t.Context(), args, out, errOut); got != exitUsage {
				t.Errorf("%s: exit code %d, want %d", tc.reason, got, exitUsage)
			}
			if !strings.Contains(errOut.String(), tc.want) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, errOut)
			}
		})
	}
}

func TestTableNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table() {
		if seen[r.id()] {
			t.Errorf("two rows are called %s", r.id())
		}
		seen[r.id()] = true
		if r.about == "" || r.run == nil {
			t.Errorf("row %s has no description, or no function", r.id())
		}
	}
}
