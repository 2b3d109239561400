// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Diagrams are flowcharts and sequence diagrams in the part of Mermaid's syntax that these
// expressions match (mermaid.js.org, pages flowchart and sequenceDiagram). GitHub shows an
// error in place of a diagram that does not parse.
var (
	flowStart = regexp.MustCompile(`^(flowchart|graph) (LR|RL|TB|TD|BT)$`)
	flowLine  = regexp.MustCompile(`^(direction (LR|RL|TB|TD|BT)|subgraph \w+(\["[^"]+"\])?|end|` + flowNode + `( ` + flowEdge + ` ` + flowNode + `)*)$`)
	flowID    = regexp.MustCompile(`^(\w+)`)

	sequenceLine = regexp.MustCompile(`^(participant \w+ as [^";#]+|(loop|opt|alt|else|par|and) [^";#]+|end|Note (over|left of|right of) \w+(,\w+)?: [^;#]+|(\w+)(->>|-->>|->|-->|-x|--x)(\w+): [^;#]+)$`)
	blockStart   = regexp.MustCompile(`^(subgraph|loop|opt|alt|par) `)
)

const (
	// flowNode matches a node, by its ID alone or with a quoted label in one of three shapes.
	flowNode = `\w+(\["[^"]+"\]|\(\["[^"]+"\]\)|\("[^"]+"\))?`

	// flowEdge matches an arrow, with or without a quoted label.
	flowEdge = `(<-->|-->|-\.->|---)(\|"[^"]+"\|)?`
)

// diagrams returns the Mermaid blocks of a page.
func diagrams(text string) []string {
	var out []string
	var block []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case !inside && strings.TrimSpace(line) == "```mermaid":
			inside, block = true, nil
		case inside && strings.TrimSpace(line) == "```":
			inside = false
			out = append(out, strings.Join(block, "\n"))
		case inside:
			block = append(block, line)
		}
	}
	return out
}

// faults returns what is wrong with a diagram.
func faults(diagram string) []string {
	lines := strings.Split(diagram, "\n")
	kind := strings.TrimSpace(lines[0])
	valid := sequenceLine
	switch {
	case flowStart.MatchString(kind):
		valid = flowLine
	case kind != "sequenceDiagram":
		return []string{fmt.Sprintf("unknown kind of diagram %q", kind)}
	}
	var out []string
	depth := 0
	participants := map[string]bool{}
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !valid.MatchString(line) {
			out = append(out, fmt.Sprintf("not understood: %q", line))
			continue
		}
		if name, ok := strings.CutPrefix(line, "participant "); ok {
			participants[flowID.FindString(name)] = true
		}
		if m := sequenceLine.FindStringSubmatch(line); kind == "sequenceDiagram" && m != nil {
			for _, name := range []string{m[5], m[7]} {
				if name != "" && !participants[name] {
					out = append(out, fmt.Sprintf("no participant %q", name))
				}
			}
		}
		switch {
		case blockStart.MatchString(line):
			depth++
		case line == "end":
			depth--
		}
	}
	if depth != 0 {
		out = append(out, "blocks without an end, or ends without a block")
	}
	return out
}

func TestDiagrams(t *testing.T) {
	count := 0
	for _, name := range files(t, ".", ".md") {
		for _, d := range diagrams(text(t, name)) {
			count++
			for _, f := range faults(d) {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
	if count == 0 {
		t.Error("no diagrams")
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason  string
		diagram string
		want    []string
	}{
		"Flowchart": {
			reason:  "Nodes, edges and subgraphs with quoted labels are good.",
			diagram: "flowchart LR\n  subgraph a[\"A (1)\"]\n    x[\"X<br>1\"] --> y\n  end\n  y -.->|\"z\"| z([\"Z\"])",
		},
		"UnquotedLabel": {
			reason:  "A label without quotes breaks at the first bracket.",
			diagram: "flowchart LR\n  x[X (1)] --> y",
			want:    []string{`not understood: "x[X (1)] --> y"`},
		},
		"NoEnd": {
			reason:  "A subgraph needs an end.",
			diagram: "flowchart LR\n  subgraph a[\"A\"]\n  x --> y",
			want:    []string{"blocks without an end, or ends without a block"},
		},
		"Sequence": {
			reason:  "Participants, messages, loops and notes are good.",
			diagram: "sequenceDiagram\n  participant A as Client (1)\n  participant B as Server\n  loop every 5 s\n    A->>B: ask\n  end\n  Note over A,B: done",
		},
		"UnknownParticipant": {
			reason:  "A participant that is misspelt would be drawn as another one.",
			diagram: "sequenceDiagram\n  participant A as Client\n  A->>B: ask",
			want:    []string{`no participant "B"`},
		},
		"Semicolon": {
			reason:  "Mermaid ends a line at a semicolon.",
			diagram: "sequenceDiagram\n  participant A as Client\n  A->>A: think; act",
			want:    []string{`not understood: "A->>A: think; act"`},
		},
		"UnknownKind": {
			reason:  "Other kinds of diagrams are not checked, so they are refused.",
			diagram: "mindmap\n  x",
			want:    []string{`unknown kind of diagram "mindmap"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, faults(tc.diagram)); diff != "" {
				t.Errorf("\n%s\nfaults(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
