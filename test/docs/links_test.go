// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// root is the repository, seen from this package.
const root = "../.."

var (
	// link matches the target of [text](target) and of [text](target "title").
	link = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)>?(?:\s+"[^"]*")?\s*\)`)
	// definition matches the target of a reference definition, [label]: target.
	definition = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*(\S+)`)
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	fence      = regexp.MustCompile("^\\s*(```+|~~~+)")
	// named matches the anchors of fields of the reference.
	named    = regexp.MustCompile(`<a id="([^"]+)"`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// dropped matches the characters that GitHub leaves out of a heading's anchor
	// (gjtorikian/html-pipeline, lib/html_pipeline/node_filter/table_of_contents_filter.rb).
	dropped = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc} -]`)
)

// page is what a Markdown file links to and which anchors it has.
type page struct {
	links   []string
	anchors map[string]bool
}

// parse reads a page. Code blocks and code spans have neither links nor headings.
func parse(text string) page {
	p := page{anchors: map[string]bool{}}
	seen := map[string]int{}
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := fence.FindStringSubmatch(line); m != nil {
			switch {
			case open == "":
				open = m[1]
			case strings.HasPrefix(m[1], open):
				open = ""
			}
			continue
		}
		if open != "" {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.anchors[unique(seen, slug(m[1]))] = true
		}
		if strings.HasPrefix(line, "    ") && !strings.Contains(line, "](") {
			continue
		}
		line = codeSpan.ReplaceAllString(line, "``")
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			p.anchors[m[1]] = true
		}
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			p.links = append(p.links, m[1])
		}
		if m := definition.FindStringSubmatch(line); m != nil {
			p.links = append(p.links, m[1])
		}
	}
	return p
}

// slug returns the anchor that GitHub gives a heading.
func slug(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// unique returns the anchor with the number that GitHub appends to a repeated heading.
func unique(seen map[string]int, anchor string) string {
	n := seen[anchor]
	seen[anchor]++
	if n == 0 {
		return anchor
	}
	return anchor + "-" + strconv.Itoa(n)
}

// broken returns the links of one page that lead nowhere. Pages of fsys are named by their
// slash-separated paths.
func broken(fsys fs.FS, name string) ([]string, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, target := range parse(string(text)).links {
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		if reason := check(fsys, name, target); reason != "" {
			out = append(out, name+": "+target+": "+reason)
		}
	}
	return out, nil
}

// check returns why a relative link of a page leads nowhere, or "" when it is good.
func check(fsys fs.FS, from, target string) string {
	file, anchor, hasAnchor := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(from), file))
	}
	if _, err := fs.Stat(fsys, to); err != nil {
		return "no such file"
	}
	if !hasAnchor {
		return ""
	}
	if !strings.HasSuffix(to, ".md") {
		return "an anchor in a file that is no page"
	}
	text, err := fs.ReadFile(fsys, to)
	if err != nil {
		return "cannot read the file"
	}
	if !parse(string(text)).anchors[anchor] {
		return "no such heading"
	}
	return ""
}

// files returns the files of the repository with a suffix, without those of hidden folders,
// of build output and of test data.
func files(t *testing.T, dir, suffix string) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(root), dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "_out" || name == "testdata") {
			return fs.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, suffix) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("cannot walk the repository: %v", err)
	}
	if len(out) == 0 {
		t.Fatalf("no %s files below %s", suffix, dir)
	}
	return out
}

// text returns the content of a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLinks(t *testing.T) {
	for _, name := range files(t, ".", ".md") {
		got, err := broken(os.DirFS(root), name)
		if err != nil {
			t.Errorf("cannot check %s: %v", name, err)
		}
		for _, b := range got {
			t.Error(b)
		}
	}
}

// TestIndex requires docs/README.md, from which the site has its navigation, to link every page
// of the folder. The reference has its own index.
func TestIndex(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := parse(string(text)).links
	for _, p := range files(t, "docs", ".md") {
		name := strings.TrimPrefix(p, "docs/")
		if name != "README.md" && filepath.Dir(name) != "reference" && !slices.Contains(links, name) {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
}

func TestBroken(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Good": {
			reason: "Links to files, folders, headings and other sites are good.",
			text:   "# A `b` c's, d\n## Twice\n## Twice\n[x](other.md#the-end) [x](#a-b-cs-d) [x](#twice-1) [x](.) [x](https://example.com/#x)\n",
		},
		"Field": {
			reason: "A field of the reference is an anchor, and one in code is none.",
			text:   "<dt><a id=\"spec.a\" href=\"#spec.a\">a</a></dt>\n`<a id=\"b\">`\n[x](#spec.a) [x](#b)\n",
			want:   []string{"docs/page.md: #b: no such heading"},
		},
		"NoFile": {
			reason: "A file that does not exist is reported.",
			text:   "[x](gone.md)\n",
			want:   []string{"docs/page.md: gone.md: no such file"},
		},
		"NoHeading": {
			reason: "An anchor without a heading is reported, of this page and of others.",
			text:   "[x](#gone) and [y](other.md#gone)\n",
			want:   []string{"docs/page.md: #gone: no such heading", "docs/page.md: other.md#gone: no such heading"},
		},
		"HeadingInCode": {
			reason: "A comment of a code block is no heading.",
			text:   "```sh\n# gone\n```\n[x](#gone)\n",
			want:   []string{"docs/page.md: #gone: no such heading"},
		},
		"LinkInCode": {
			reason: "A link in code is no link.",
			text:   "```\n[x](gone.md)\n```\n`[x](gone.md)`\n",
		},
		"Definition": {
			reason: "A reference definition is a link.",
			text:   "[x][l]\n\n[l]: gone.md\n",
			want:   []string{"docs/page.md: gone.md: no such file"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"docs/page.md":  {Data: []byte(tc.text)},
				"docs/other.md": {Data: []byte("# The end\n")},
			}
			got, err := broken(fsys, "docs/page.md")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nbroken(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
