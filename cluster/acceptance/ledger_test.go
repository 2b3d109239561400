// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLedgerSurvives(t *testing.T) {
	dir := t.TempDir()
	l, err := openLedger(dir)
	if err != nil {
		t.Fatalf("cannot open: %v", err)
	}
	if err := l.begin("tsgw-acc-abc", place{APIURL: "https://api.example.com", Tailnet: "-"}); err != nil {
		t.Fatalf("cannot begin: %v", err)
	}
	var seqs []int
	for _, name := range []string{"one", "two", "three"} {
		seq, err := l.intend("section/row", kindService, name, "")
		if err != nil {
			t.Fatalf("cannot write: %v", err)
		}
		seqs = append(seqs, seq)
	}
	if err := l.made(seqs[1], "id-two"); err != nil {
		t.Fatalf("cannot write: %v", err)
	}
	if err := l.gone(seqs[0]); err != nil {
		t.Fatalf("cannot write: %v", err)
	}
	if err := l.close(); err != nil {
		t.Fatalf("cannot close: %v", err)
	}
	// A crash truncates the line that is being written.
	path := filepath.Join(dir, ledgerFile)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("cannot open: %v", err)
	}
	if _, err := f.WriteString(`{"op":"inte`); err != nil {
		t.Fatalf("cannot write: %v", err)
	}
	f.Close()

	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("cannot read: %v", err)
	}
	entries, err := parseLedger(b)
	if err != nil {
		t.Fatalf("cannot parse: %v", err)
	}
	want := []entry{
		{Op: opIntend, Seq: 3, Kind: kindService, Name: "three", Row: "section/row"},
		{Op: opIntend, Seq: 2, Kind: kindService, Name: "two", ID: "id-two", Row: "section/row"},
	}
	if diff := cmp.Diff(want, leftIn(entries), cmp.AllowUnexported(entry{}), cmpopts.IgnoreFields(entry{}, "At")); diff != "" {
		t.Errorf("remaining objects, the newest first: -want, +got:\n%s", diff)
	}

	// Another process continues the ledger.
	reopened, err := openLedger(dir)
	if err != nil {
		t.Fatalf("cannot open again: %v", err)
	}
	defer reopened.close()
	seq, err := reopened.intend("section/row", kindKey, "four", "")
	if err != nil || seq != 4 {
		t.Errorf("sequence numbers continue: got %d, %v", seq, err)
	}
	if reopened.lastRun().Name != "tsgw-acc-abc" {
		t.Errorf("the prefix is known: got %q", reopened.lastRun().Name)
	}
	third, err := openLedger(dir)
	if err != nil {
		t.Fatalf("cannot open a third time: %v", err)
	}
	if err := third.close(); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerWholeLine checks that a line stays if a crash has cut only its end of line.
func TestLedgerWholeLine(t *testing.T) {
	dir := t.TempDir()
	line := `{"op":"intend","seq":1,"kind":"service","name":"svc:tsgw-acc-abc-web"}`
	if err := os.WriteFile(filepath.Join(dir, ledgerFile), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 2; want++ {
		l, err := openLedger(dir)
		if err != nil {
			t.Fatalf("cannot open: %v", err)
		}
		if got := len(l.left()); got != want {
			t.Errorf("want %d remaining objects, got %d", want, got)
		}
		if _, err := l.intend("row", kindKey, "key", ""); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMine(t *testing.T) {
	const prefix = "tsgw-acc-abc"
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Itself":    {reason: "The prefix alone is ours.", name: prefix, want: true},
		"Name":      {reason: "So is a name that continues with a dash.", name: prefix + "-web", want: true},
		"Domain":    {reason: "And a domain below.", name: prefix + ".example.com", want: true},
		"Key":       {reason: "And the description of a key.", name: prefix + " host", want: true},
		"Longer":    {reason: "Another run's prefix is not.", name: prefix + "d-web"},
		"Elsewhere": {reason: "Nor is a name that contains it elsewhere.", name: "x-" + prefix},
		"Empty":     {reason: "Nor is an empty name.", name: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mine(tc.name, prefix); got != tc.want {
				t.Errorf("%s got %t", tc.reason, got)
			}
		})
	}
	if mine("anything", "") {
		t.Error("without a prefix nothing is ours")
	}
}

func TestPolicyMark(t *testing.T) {
	mark := policyMark("tsgw-acc-abc")
	for name, text := range map[string]string{"Newline": "{\n\t// a\n}\n", "Empty": "", "Windows": "{\r\n}\r\n"} {
		t.Run(name, func(t *testing.T) {
			marked := withMark(text, mark)
			if marked == text {
				t.Fatal("the mark is not there")
			}
			if diff := cmp.Diff(text, withoutMark(marked, mark)); diff != "" {
				t.Errorf("the text is as it was: -want, +got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff("{}\n", withoutMark(withMark("{}", mark), mark)); diff != "" {
		t.Errorf("a line's end may be added: -want, +got:\n%s", diff)
	}
	other := withMark("{}\n", policyMark("tsgw-acc-other"))
	if diff := cmp.Diff(other, withoutMark(other, mark)); diff != "" {
		t.Errorf("the mark of another run stays: -want, +got:\n%s", diff)
	}
}
