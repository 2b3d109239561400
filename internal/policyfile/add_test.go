// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdd(t *testing.T) {
	owner := Entry{Section: "tagOwners", Key: "tag:k8s", Value: json.RawMessage(`["tag:k8s-operator"]`)}
	grant := Entry{Section: "grants", Value: json.RawMessage(`{"src": ["autogroup:member"], "dst": ["tag:k8s"], "ip": ["tcp:80"]}`)}
	cases := map[string]struct {
		reason    string
		text      string
		entries   []Entry
		want      string
		conflicts []Conflict
	}{
		"Empty": {
			reason: "Sections are created without marks.", text: "{}", entries: []Entry{owner, grant},
			want: "{\n\t\"tagOwners\": {\n\t\t\"tag:k8s\": [\"tag:k8s-operator\"],\n\t},\n\t\"grants\": [\n\t\t{\"src\": [\"autogroup:member\"], \"dst\": [\"tag:k8s\"], \"ip\": [\"tcp:80\"]},\n\t],\n}",
		},
		"Comments": {
			reason: "Comments and other entries stay byte for byte.", entries: []Entry{owner, grant},
			text: "{\n  // Our people.\n  \"TagOwners\": {\n    \"tag:db\": [], // The database.\n  },\n  \"grants\": [\n    /* all */ {\"src\": [\"*\"], \"dst\": [\"tag:db\"], \"ip\": [\"*\"]}\n  ]\n}\n",
			want: "{\n  // Our people.\n  \"TagOwners\": {\n    \"tag:db\": [], // The database.\n    \"tag:k8s\": [\"tag:k8s-operator\"],\n  },\n  \"grants\": [\n    {\"src\": [\"autogroup:member\"], \"dst\": [\"tag:k8s\"], \"ip\": [\"tcp:80\"]},\n    /* all */ {\"src\": [\"*\"], \"dst\": [\"tag:db\"], \"ip\": [\"*\"]}\n  ]\n}\n",
		},
		"Present": {
			reason: "Nothing is added twice.", entries: []Entry{owner, grant},
			text: `{"tagOwners": {"tag:k8s": ["tag:k8s-operator"]}, "grants": [{"src": ["autogroup:member"], "ip": ["tcp:80"], "dst": ["tag:k8s"]}]}`,
			want: `{"tagOwners": {"tag:k8s": ["tag:k8s-operator"]}, "grants": [{"src": ["autogroup:member"], "ip": ["tcp:80"], "dst": ["tag:k8s"]}]}`,
		},
		"Others": {
			reason: "Other owners of the tag stay.", entries: []Entry{owner},
			text: `{"tagOwners": {"tag:k8s": ["group:ops" /* on call */, ]}}`,
			want: `{"tagOwners": {"tag:k8s": ["group:ops", "tag:k8s-operator" /* on call */, ]}}`,
		},
		"NoOwners": {
			reason: "A list that is empty gets its first element.", entries: []Entry{owner},
			text: `{"tagOwners": {"tag:k8s": []}}`,
			want: `{"tagOwners": {"tag:k8s": ["tag:k8s-operator"]}}`,
		},
		"OtherType": {
			reason: "A value of another type stays.", entries: []Entry{owner},
			text: `{"tagOwners": {"tag:k8s": "me"}}`, want: `{"tagOwners": {"tag:k8s": "me"}}`,
			conflicts: []Conflict{{Section: "tagOwners", Key: "tag:k8s"}},
		},
		"OtherSection": {
			reason: "So does a section of another type.", entries: []Entry{owner},
			text: `{"tagOwners": []}`, want: `{"tagOwners": []}`,
			conflicts: []Conflict{{Section: "tagOwners"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, conflicts, err := Add([]byte(tc.text), tc.entries)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nAdd(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
				t.Errorf("%s\nAdd(...): -want conflicts, +got:\n%s", tc.reason, diff)
			}
			second, _, err := Add(got, tc.entries)
			if diff := cmp.Diff(string(got), string(second)); diff != "" || err != nil {
				t.Errorf("%s\nAdd(...) again: %v, -want, +got:\n%s", tc.reason, err, diff)
			}
			if owners, err := Owners(got); len(owners) > 0 || err != nil {
				t.Errorf("%s\nOwners(...): %v, %v, want none", tc.reason, owners, err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	text := []byte(`{"TagOwners": {"tag:a": ["b", "a"] /* x */}, "grants": [{"src": ["*"], /* y */ "dst": ["tag:a"]}], "hosts": 1}`)
	var got []Entry
	for _, s := range []string{"tagOwners", "grants", "hosts", "acls"} {
		entries, err := Read(text, s)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entries...)
	}
	want := []Entry{{Section: "tagOwners", Key: "tag:a", Value: json.RawMessage(`["b", "a"]`)}, {Section: "grants", Value: json.RawMessage(`{"src": ["*"], "dst": ["tag:a"]}`)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read(...): -want, +got:\n%s", diff)
	}
	if _, err := Read(text, "nonsense"); err == nil {
		t.Error("Read(...) of an unknown section: want an error")
	}
	for section, want := range map[string]bool{"hosts": true, "grants": true, "acls": false} {
		if got, err := Has(text, section); got != want || err != nil {
			t.Errorf("Has(%q): got %v, %v, want %v", section, got, err, want)
		}
	}
}
