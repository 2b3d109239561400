// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
)

// Lists of fields are HTML around Markdown, which GitHub and Python-Markdown's md_in_html both render:
// a blank line ends the HTML for the former, and the attribute markdown is for the latter, which takes the
// content of a dd for text in a line unless the value is block.

// element matches what a path has after the name of a list or a map.
var element = regexp.MustCompile(`\[[^\]]*\]`)

// anchor returns the anchor of a field: its path, as kubectl explain takes it.
func (f field) anchor() string { return element.ReplaceAllString(f.path, "") }

// writeFields writes a list of fields. Fields beneath a field are in a part that the reader opens.
func writeFields(b *bytes.Buffer, fs []field) {
	b.WriteString("<dl markdown=\"1\">\n")
	for _, f := range fs {
		id := html.EscapeString(f.anchor())
		fmt.Fprintf(b, "<dt><a id=\"%s\" href=\"#%s\"><code>%s</code></a> %s</dt>\n<dd markdown=\"block\">\n\n", id, id, html.EscapeString(f.name), f.kind)
		if f.meaning != "" {
			fmt.Fprintf(b, "%s\n\n", f.meaning)
		}
		writeRules(b, f.rules)
		if len(f.fields) > 0 {
			fmt.Fprintf(b, "<details markdown=\"1\">\n<summary>Fields of <code>%s</code></summary>\n", html.EscapeString(f.children()))
			writeFields(b, f.fields)
			b.WriteString("</details>\n\n")
		}
		b.WriteString("</dd>\n")
	}
	b.WriteString("</dl>\n")
}

// children returns the path that the fields beneath a field have in common.
func (f field) children() string {
	return f.fields[0].path[:len(f.fields[0].path)-len(f.fields[0].name)-1]
}

func writeRules(b *bytes.Buffer, rules []string) {
	if len(rules) == 0 {
		return
	}
	b.WriteString("Rules:\n\n")
	for _, r := range rules {
		fmt.Fprintf(b, "- %s\n", r)
	}
	b.WriteString("\n")
}
