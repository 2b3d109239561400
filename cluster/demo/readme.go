// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	readme = "README.md"

	// installSection is the heading above the commands that the demo runs.
	installSection = "## Use it in your cluster"
)

// commands returns the commands of a section of a Markdown file by the first words of each, in their
// order: lines of indented code, without those that show a prompt. A line that ends with a
// backslash continues in the next.
func commands(markdown, heading string) ([]string, error) {
	_, section, ok := strings.Cut(markdown, "\n"+heading+"\n")
	if !ok {
		return nil, errors.Errorf("%s has no section %q", readme, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	continued := false
	for line := range strings.Lines(section) {
		code, ok := strings.CutPrefix(line, "    ")
		code = strings.TrimSpace(code)
		if !ok || code == "" || strings.HasPrefix(code, "$") || strings.HasPrefix(code, "#") {
			continued = false
			continue
		}
		text, more := strings.CutSuffix(code, `\`)
		if continued {
			out[len(out)-1] += text
		} else {
			out = append(out, text)
		}
		continued = more
	}
	return out, nil
}

// readmeCommands runs the commands of the README's section that begin with a prefix, as written
// except for the replacements: pairs of a text and its value in the lab. Each text must occur, so
// that the README and the demo cannot diverge.
func (d *demo) readmeCommands(ctx context.Context, p *progress, prefix string, replacements ...string) error {
	b, err := os.ReadFile(readme)
	if err != nil {
		return errors.Wrap(err, "cannot read the README")
	}
	all, err := commands(string(b), installSection)
	if err != nil {
		return err
	}
	found := strings.Builder{}
	for _, c := range all {
		if strings.HasPrefix(c, prefix) {
			found.WriteString(c + "\n")
		}
	}
	if found.Len() == 0 {
		return errors.Errorf("%s has no command %q", readme, prefix)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(found.String(), replacements[i]) {
			return errors.Errorf("the commands %q of %s do not contain %q", prefix, readme, replacements[i])
		}
	}
	for line := range strings.Lines(strings.NewReplacer(replacements...).Replace(found.String())) {
		line = strings.TrimSpace(line)
		p.printf("      $ %s\n", line)
		if _, err := output(ctx, nil, d.lab.commandEnv(), "bash", "-euo", "pipefail", "-c", line); err != nil {
			return err
		}
	}
	return nil
}
