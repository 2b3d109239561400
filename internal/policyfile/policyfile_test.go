// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

const (
	ann = "c1/default/ann"
	bob = "c1/default/bob"
)

func entry(section, key, value string) Entry {
	return Entry{Section: section, Key: key, Value: json.RawMessage(value)}
}

// everything has an entry of each section.
var everything = []Entry{
	entry("grants", "", `{"ip":["tcp:443"],"dst":["svc:web"],"src":["tag:k8s"]}`),
	entry("grants", "", `{"app":{"a.b/c":[{"x":1}]},"dst":["tag:k8s"],"src":["group:ops"]}`),
	entry("acls", "", `{"action":"accept","src":["tag:k8s"],"dst":["tag:k8s:80"]}`),
	entry("tagOwners", "tag:web", `["tag:k8s-operator"]`),
	entry("tagOwners", "tag:api", `[]`),
	entry("autoApprovers.services", "svc:web", `["tag:web"]`),
	entry("autoApprovers.routes", "10.9.0.0/16", `["tag:web"]`),
	entry("autoApprovers.exitNode", "", `"tag:web"`),
	entry("tests", "", `{"src":"tag:k8s","accept":["svc:web:443"]}`),
	entry("sshTests", "", `{"src":"tag:k8s","dst":["tag:web"],"accept":["root"]}`),
	entry("nodeAttrs", "", `{"target":["tag:web"],"attr":["funnel"]}`),
	entry("hosts", "db", `"100.64.1.1"`),
	entry("ssh", "", `{"action":"check","src":["group:ops"],"dst":["tag:web"],"users":["root"]}`),
	entry("postures", "posture:mac", `["node:os == 'macos'"]`),
	entry("groups", "group:ops", `["a@example.com"]`),
}

// files are typical policy files.
var files = map[string]string{
	"Empty":          `{}`,
	"EmptyLines":     "{\n}\n",
	"Comment":        "// ours\n{ // all of it\n\t// nothing yet\n}\n// end\n",
	"BlockComments":  "/* a */ { /* b */ } /* c */",
	"BlockLines":     "{ /* b\n c */\n\t\"grants\": [ /* d\n e */ ] }",
	"Inline":         `{"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}], "hosts": {"a": "1.1.1.1"}, "tests": []}`,
	"InlineTrailing": `{"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]},], "hosts": {"a": "1.1.1.1",},}`,
	"InlineSpaces":   `{ "grants": [ {"src": ["*"]} ], "hosts": { }, "tagOwners": {	"tag:x": [] } }`,
	"Default": `// Example/default ACLs for unrestricted connections.
{
	// Declare static groups of users. Use autogroups for all users or users with a specific role.
	// "groups": {
	//  	"group:example": ["alice@example.com", "bob@example.com"],
	// },

	// Define the tags which can be applied to devices and by which users.
	// "tagOwners": {
	//  	"tag:example": ["autogroup:admin"],
	// },

	// Define grants that govern access for users, groups, autogroups, tags,
	// Tailscale IP addresses, and subnet ranges.
	"grants": [
		// Allow all connections.
		// Comment this section out if you want to define specific restrictions.
		{"src": ["*"], "dst": ["*"], "ip": ["*"]},

		// Allow users in "group:example" to access "tag:example", but only from
		// devices that are running macOS and have enabled Tailscale client auto-updating.
		// {"src": ["group:example"], "dst": ["tag:example"], "ip": ["*"], "srcPosture":["posture:autoUpdateMac"]},
	],

	// Define users and devices that can use Tailscale SSH.
	"ssh": [
		// Allow all users to SSH into their own devices in check mode.
		{
			"action": "check",
			"src":    ["autogroup:member"],
			"dst":    ["autogroup:self"],
			"users":  ["autogroup:nonroot", "root"],
		},
	],
	"nodeAttrs": [
		{
			// Funnel policy, which lets tailnet members control Funnel
			"target": ["autogroup:member"],
			"attr":   ["funnel"],
		},
	],

	// Test access rules every time they're saved.
	// "tests": [
	//  	{"src": "alice@example.com", "accept": ["tag:example"], "deny": ["100.101.102.103:443"]},
	// ],
}
`,
	"OldNames": `{
  "Groups": {"group:a": ["x@y.z"]},
  "ACLs": [
    {"Action": "accept", "Users": ["*"], "Ports": ["*:*"]}
  ],
  "TagOwners": {
    "tag:a": ["group:a"]   // no comma
    // the end
  },
  "AutoApprovers": {"Services": {}, "routes": {"10.0.0.0/8": ["tag:a"],},
  }
}`,
	"Deep": "{\n        \"tagOwners\": {\n                \"tag:x\": [], // x\n                /* y */ \"tag:y\": [], /* z */\n        },\n        \"hosts\": {\n\n        },\n}\n",
	"CRLF": "{\r\n  // c\r\n  \"grants\": [\r\n    {\"src\": [\"*\"]} // d\r\n  ],\r\n  \"hosts\": {}, // e\r\n}\r\n",
	"Own":  "{\"tests\": [\n], \"groups\": {\"group:x\": [\n]}}",
}

func mustMerge(t *testing.T, text, owner string, entries ...Entry) (string, []Conflict) {
	t.Helper()
	got, conflicts, err := Merge([]byte(text), owner, entries, Options{})
	if err != nil {
		t.Fatalf("Merge(...): %v\n%s", err, text)
	}
	return string(got), conflicts
}

// TestRoundTrip merges all entries into every file and removes them again, for one owner and
// for two in both orders.
func TestRoundTrip(t *testing.T) {
	for name, input := range files {
		t.Run(name, func(t *testing.T) {
			merged, conflicts := mustMerge(t, input, ann, everything...)
			if len(conflicts) > 0 {
				t.Fatalf("conflicts: %v", conflicts)
			}
			wantEntries(t, merged, everything)
			repeated, _ := mustMerge(t, merged, ann, everything...)
			if diff := cmp.Diff(merged, repeated); diff != "" {
				t.Errorf("a second merge changes something: -first, +second:\n%s", diff)
			}
			none, _ := mustMerge(t, merged, ann)
			if diff := cmp.Diff(input, none); diff != "" {
				t.Errorf("the original text has changed: -want, +got:\n%s", diff)
			}
			// Two owners share keys, and have separate lists.
			for _, first := range []string{ann, bob} {
				two, _ := mustMerge(t, merged, bob, everything...)
				second := map[string]string{ann: bob, bob: ann}[first]
				remaining, _ := mustMerge(t, two, first)
				wantEntries(t, remaining, everything)
				none, _ = mustMerge(t, remaining, second)
				if diff := cmp.Diff(input, none); diff != "" {
					t.Errorf("%s left first: the original text has changed: -want, +got:\n%s", first, diff)
				}
			}
		})
	}
}

// wantEntries checks that a policy file has all entries.
func wantEntries(t *testing.T, text string, entries []Entry) {
	t.Helper()
	f, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("cannot parse the result: %v\n%s", err, text)
	}
	for _, e := range entries {
		want, err := canonical(e.Value, shapes[e.Section])
		if err != nil {
			t.Fatal(err)
		}
		found := false
		vs, _ := f.find(e.Section)
		for _, v := range vs {
			for _, elem := range f.items(v) {
				c, _ := canonicalOf(*elem.value, shapes[e.Section])
				found = found || (elem.key == e.Key && c == want)
			}
		}
		if !found {
			t.Errorf("%s %s%s is not in the result:\n%s", e.Section, e.Key, e.Value, text)
		}
	}
}

func TestMerge(t *testing.T) {
	marked := func(owner string) string { return "// gateway.tailscale.com/owner=" + owner }
	cases := map[string]struct {
		reason    string
		input     string
		owner     string
		entries   []Entry
		adopt     bool
		want      string
		conflicts []Conflict
	}{
		"Layout": {
			reason:  "Added text has the style of the file.",
			input:   "{\n\t// Grants of ours.\n\t\"grants\": [\n\t\t{\"src\": [\"a\"]}, // a\n\n\t\t// b is off\n\t],\n}\n",
			entries: []Entry{entry("grants", "", `{"ip":["*"],"src":["b"]}`), entry("hosts", "db", `"1.2.3.4"`)},
			want: "{\n\t// Grants of ours.\n\t\"grants\": [\n\t\t{\"src\": [\"a\"]}, // a\n\t\t" + marked(ann) + "\n\t\t{\"src\": [\"b\"], \"ip\": [\"*\"]},\n\n\t\t// b is off\n\t],\n" +
				"\t// gateway.tailscale.com/section\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t\"db\": \"1.2.3.4\",\n\t},\n}\n",
		},
		"Update": {
			reason:  "A changed value is corrected in place.",
			input:   "{\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t\"db\": \"9.9.9.9\", // moved\n\t\t\"x\": \"1.1.1.1\",\n\t},\n}",
			entries: []Entry{entry("hosts", "db", `"1.2.3.4"`)},
			want:    "{\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t\"db\": \"1.2.3.4\", // moved\n\t\t\"x\": \"1.1.1.1\",\n\t},\n}",
		},
		"Satisfied": {
			reason:  "An equal entry without an owner is not changed. Lists of a table are sets.",
			input:   `{"tagOwners": {"tag:a": ["y", "x"]}}`,
			entries: []Entry{entry("tagOwners", "tag:a", `["x","y"]`)},
			want:    `{"tagOwners": {"tag:a": ["y", "x"]}}`,
		},
		"Conflict": {
			reason:    "A different entry without an owner is a conflict, and the rest is written.",
			input:     "{\n\t\"hosts\": {\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			entries:   []Entry{entry("hosts", "a", `"2.2.2.2"`), entry("hosts", "b", `"2.2.2.2"`)},
			want:      "{\n\t\"hosts\": {\n\t\t\"a\": \"1.1.1.1\",\n\t\t" + marked(ann) + "\n\t\t\"b\": \"2.2.2.2\",\n\t},\n}",
			conflicts: []Conflict{{Section: "hosts", Key: "a"}},
		},
		"ConflictWithOwner": {
			reason:    "Another owner's entry is not changed, even with adopt.",
			input:     "{\n\t\"hosts\": {\n\t\t" + marked(bob) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			entries:   []Entry{entry("hosts", "a", `"2.2.2.2"`)},
			adopt:     true,
			want:      "{\n\t\"hosts\": {\n\t\t" + marked(bob) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			conflicts: []Conflict{{Section: "hosts", Key: "a", Owner: bob}},
		},
		"Share": {
			reason:  "Two owners share an equal entry.",
			input:   "{\n\t\"hosts\": {\n\t\t" + marked(bob) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			entries: []Entry{entry("hosts", "a", `"1.1.1.1"`)},
			want:    "{\n\t\"hosts\": {\n\t\t" + marked(bob) + "\n\t\t" + marked(ann) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
		},
		"SharedAndChanged": {
			reason:    "An owner with another value gives up a shared entry.",
			input:     "{\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t" + marked(bob) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			entries:   []Entry{entry("hosts", "a", `"2.2.2.2"`)},
			want:      "{\n\t\"hosts\": {\n\t\t" + marked(bob) + "\n\t\t\"a\": \"1.1.1.1\",\n\t},\n}",
			conflicts: []Conflict{{Section: "hosts", Key: "a", Owner: bob}},
		},
		"Adopt": {
			reason:  "With adopt, entries without an owner are taken over, even if they differ.",
			input:   "{\n\t\"hosts\": {\n\t\t// db\n\t\t\"a\": \"1.1.1.1\",\n\t},\n\t\"grants\": [{\"src\": [\"a\"]}],\n}",
			entries: []Entry{entry("hosts", "a", `"2.2.2.2"`), entry("grants", "", `{"src":["a"]}`)},
			adopt:   true,
			want:    "{\n\t\"hosts\": {\n\t\t// db\n\t\t" + marked(ann) + "\n\t\t\"a\": \"2.2.2.2\",\n\t},\n\t\"grants\": [\n\t\t" + marked(ann) + "\n\t\t{\"src\": [\"a\"]}],\n}",
		},
		"OtherType": {
			reason:    "A section of another type is a conflict.",
			input:     `{"hosts": null, "grants": {}}`,
			entries:   []Entry{entry("hosts", "a", `"2.2.2.2"`), entry("hosts", "b", `"2.2.2.2"`), entry("grants", "", `{}`)},
			want:      `{"hosts": null, "grants": {}}`,
			conflicts: []Conflict{{Section: "grants"}, {Section: "hosts"}},
		},
		"RemoveKeepsTheirs": {
			reason: "A removal keeps surrounding comments and entries, and moves no entry into a comment.",
			input:  "{\n\t\"hosts\": {\n\t\t// first\n\t\t\"a\": \"1.1.1.1\", // one\n\t\t" + marked(ann) + "\n\t\t\"b\": \"2.2.2.2\", \"c\": \"3.3.3.3\",\n\t\t// last\n\t},\n}",
			want:   "{\n\t\"hosts\": {\n\t\t// first\n\t\t\"a\": \"1.1.1.1\", // one\n\t\t \"c\": \"3.3.3.3\",\n\t\t// last\n\t},\n}",
		},
		"UserKeepsSection": {
			reason: "A created section stays if others have added entries.",
			input:  "{\n\t// gateway.tailscale.com/section\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t\"b\": \"2.2.2.2\",\n\t\t\"c\": \"3.3.3.3\",\n\t},\n}",
			want:   "{\n\t// gateway.tailscale.com/section\n\t\"hosts\": {\n\t\t\"c\": \"3.3.3.3\",\n\t},\n}",
		},
		"Formatted": {
			reason: "Entries are removed after the admin console has formatted the file, and an owner whose name has the same prefix is not affected.",
			input:  "{\n\t\"hosts\": {\n\t\t" + marked(ann) + "\n\t\t\"a\":    \"1.1.1.1\",\n\n\t\t" + marked(ann+"2") + "\n\t\t\"long\": \"2.2.2.2\",\n\t},\n}\n",
			want:   "{\n\t\"hosts\": {\n\n\t\t" + marked(ann+"2") + "\n\t\t\"long\": \"2.2.2.2\",\n\t},\n}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, conflicts, err := Merge([]byte(tc.input), ann, tc.entries, Options{Adopt: tc.adopt})
			if err != nil {
				t.Fatalf("%s\nMerge(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s\nMerge(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
				t.Errorf("%s\nMerge(...): -want conflicts, +got conflicts:\n%s", tc.reason, diff)
			}
			repeated, _, err := Merge(got, ann, tc.entries, Options{Adopt: tc.adopt})
			if err != nil || string(repeated) != string(got) {
				t.Errorf("%s\na second merge changes something: %v\n%s", tc.reason, err, repeated)
			}
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		text    string
		owner   string
		entries []Entry
		want    string
	}{
		"NoObject":       {reason: "A list is not a policy file.", text: `[]`, owner: ann, want: "not an object"},
		"Syntax":         {reason: "Invalid text is not a policy file.", text: `{`, owner: ann, want: "cannot parse"},
		"Owner":          {reason: "An owner must fit a comment.", text: `{}`, owner: "a\nb", want: "has spaces"},
		"OwnerReturns":   {reason: "Editors end a line at a carriage return, too.", text: `{}`, owner: "a\rb", want: "has spaces"},
		"OwnerSeparates": {reason: "Editors end a line at Unicode separators, too.", text: `{}`, owner: "a\u2028b", want: "has spaces"},
		"OwnerControls":  {reason: "A terminal must not interpret an owner as a command.", text: `{}`, owner: "a\x1b[2Jb", want: "has spaces"},
		"UnknownSection": {reason: "Fragments support only some sections.", text: `{}`, owner: ann, entries: []Entry{entry("derpMap", "x", `1`)}, want: "not one that fragments may have"},
		"NoKey":          {reason: "An object's entries have keys.", text: `{}`, owner: ann, entries: []Entry{entry("hosts", "", `""`)}, want: "must have a key"},
		"Twice":          {reason: "Keys are unique.", text: `{}`, owner: ann, entries: []Entry{entry("hosts", "a", `""`), entry("hosts", "a", `"x"`)}, want: "twice"},
		"NoJSON":         {reason: "Values are JSON.", text: `{}`, owner: ann, entries: []Entry{entry("grants", "", `{} {}`)}, want: "not valid JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := Merge([]byte(tc.text), tc.owner, tc.entries, Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nMerge(...): want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestOwned(t *testing.T) {
	for name, input := range files {
		merged, _ := mustMerge(t, input, ann, everything...)
		for owner, want := range map[string]int{ann: len(everything), bob: 0} {
			got, err := Owned([]byte(merged), owner)
			if err != nil || got != want {
				t.Errorf("%s: Owned(..., %q): want %d, got %d, %v", name, owner, want, got, err)
			}
		}
	}
}

func TestOwners(t *testing.T) {
	for name, input := range files {
		merged, _ := mustMerge(t, input, ann, everything...)
		got, err := Owners([]byte(merged))
		if err != nil || got[ann] != len(everything) || got[bob] != 0 {
			t.Errorf("%s: Owners(...): want %d entries of %s alone, got %v, %v", name, len(everything), ann, got, err)
		}
	}
	if _, err := Owners([]byte("{")); err == nil {
		t.Error("Owners(...): want an error for a text that is no policy file")
	}
}

// TestForgedMarks checks that user-defined names cannot forge marks, whatever lines they have.
func TestForgedMarks(t *testing.T) {
	const original = "{\n\t\"hosts\": {\n\t\t\"x\": \"1.1.1.1\",\n\t},\n}\n"
	cases := map[string]string{
		"Line":      "a\n\t\t// gateway.tailscale.com/owner=" + bob + "\n\t\tb",
		"Return":    "a\r// gateway.tailscale.com/owner=" + bob + "\rb",
		"Separator": "a\u2028// gateway.tailscale.com/owner=" + bob + "\u2029b",
		"Quote":     "a\", // gateway.tailscale.com/owner=" + bob + "\n\"b",
		"Comment":   "a */ // gateway.tailscale.com/owner=" + bob + " /* b",
	}
	for name, forged := range cases {
		t.Run(name, func(t *testing.T) {
			value, err := json.Marshal([]string{forged})
			if err != nil {
				t.Fatal(err)
			}
			merged, _ := mustMerge(t, original, ann, entry("groups", forged, string(value)), entry("grants", "", string(value)))
			if n, err := Owned([]byte(merged), bob); err != nil || n != 0 {
				t.Errorf("%d entries are another owner's, want none: %v\n%s", n, err, merged)
			}
			if n, err := Owned([]byte(merged), ann); err != nil || n != 2 {
				t.Errorf("%d entries are the owner's, want 2: %v\n%s", n, err, merged)
			}
			if restored, _ := mustMerge(t, merged, ann); restored != original {
				t.Errorf("the original text has changed: want\n%s\ngot\n%s", original, restored)
			}
		})
	}
}

// FuzzMerge searches for files that a merge breaks.
func FuzzMerge(f *testing.F) {
	for _, input := range files {
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input string) {
		if _, err := parse([]byte(input)); err != nil || strings.Contains(input, "gateway.tailscale.com/") {
			return // No policy file, or one with marks that nobody of us made.
		}
		merged, _ := mustMerge(t, input, ann, everything...)
		if std, err := hujson.Standardize([]byte(merged)); err != nil || !json.Valid(std) {
			t.Fatalf("the result is not a policy file: %v\n%s", err, merged)
		}
		repeated, _ := mustMerge(t, merged, ann, everything...)
		if diff := cmp.Diff(merged, repeated); diff != "" {
			t.Errorf("a second merge changes something: -first, +second:\n%s", diff)
		}
		two, _ := mustMerge(t, merged, bob, everything...)
		remaining, _ := mustMerge(t, two, ann)
		none, _ := mustMerge(t, remaining, bob)
		if diff := cmp.Diff(input, none); diff != "" {
			t.Errorf("the original text has changed: -want, +got:\n%s\nof:\n%s", diff, two)
		}
	})
}
