// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// flags of a run against a simulator.
func flags(r *simtest.Running, out string, more ...string) []string {
	return append([]string{"--api-url=" + r.URL, "--control-url=" + r.URL, "--out=" + out, "--timeout=40s", "--settle=400ms", "--containerboot=" + os.Getenv("TEST_ASSET_CONTAINERBOOT")}, more...)
}

// credentials of the simulator.
func credentials(t *testing.T) {
	t.Helper()
	for _, v := range credentialVars {
		t.Setenv(v, "")
	}
	t.Setenv("TS_CLIENT_ID", simtest.ClientID)
	t.Setenv("TS_CLIENT_SECRET", simtest.ClientSecret)
}

// readSummary reads what a run found.
func readSummary(t *testing.T, out string) summary {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(out, summaryFile))
	if err != nil {
		t.Fatalf("cannot read the summary: %v", err)
	}
	var s summary
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("cannot decode the summary: %v", err)
	}
	return s
}

// nothingLeft fails the test if the simulator has anything of a run, or the ledger
// names anything.
func nothingLeft(t *testing.T, r *simtest.Running, out string) {
	t.Helper()
	l, err := openLedger(out)
	if err != nil {
		t.Fatalf("cannot open the ledger: %v", err)
	}
	defer l.close()
	if left := l.left(); len(left) > 0 {
		t.Errorf("the ledger names what is left: %v", left)
	}
	st := r.State()
	if len(st.Services) > 0 || len(st.Devices) > 0 {
		t.Errorf("the tailnet has what is left: %v, %v", st.Services, st.Devices)
	}
	for _, k := range st.Keys {
		if k["invalid"] != true {
			t.Errorf("the tailnet has a key that is left: %v", k)
		}
	}
}

// TestAll runs the whole table: every row passes, or says why it cannot.
func TestAll(t *testing.T) {
	r := simtest.Start(t)
	credentials(t)
	out, stdout, stderr := t.TempDir(), &bytes.Buffer{}, &bytes.Buffer{}
	code := command(t.Context(), flags(r, out, "--write", "--policy"), stdout, stderr)
	t.Logf("%s%s", stdout, stderr)
	if code != exitPass {
		t.Errorf("exit code %d", code)
	}
	s := readSummary(t, out)
	if s.Counts[outcomeFail] != 0 || s.Counts[outcomePass] < 20 || len(s.Rows) != len(table()) {
		t.Errorf("counts: %v of %d", s.Counts, len(s.Rows))
	}
	nothingLeft(t, r, out)
	noSecrets(t, out)
	if strings.Contains(stdout.String()+stderr.String(), "notasecret") {
		t.Error("the credential was printed")
	}
}

// noSecrets fails the test if a file of a run holds a secret.
func noSecrets(t *testing.T, out string) {
	t.Helper()
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, secret := range []string{"tskey-", "notasecret", "Bearer "} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds %q", path, secret)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("cannot walk: %v", err)
	}
}
