// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	makefile   = "Makefile"
	codeowners = ".github/CODEOWNERS"
	linter     = ".golangci.yml"
	workflows  = ".github/workflows/"
)

// A tree is the text of each file of the repository by its path.
type tree map[string]string

// A reference is a name in a text.
type reference struct {
	file string
	line int
	name string
}

func (r reference) String() string { return fmt.Sprintf("%s:%d: %s", r.file, r.line, r.name) }

var (
	// localPath matches a path from the repository's root.
	localPath = regexp.MustCompile(`(?:^|[^\w/.@-])(?:\./|/)?((?:apis|cluster|cmd|docs|examples|extension|functions|hack|internal|package|test|\.github)/[\w.*/<>{}$-]*)`)
	// testName matches the name of a test.
	testName = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w*)`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	// makeCommand matches a call of make where texts have commands: in backquotes, at the beginning of a line
	// or of a step, and after sudo and its variables.
	makeCommand = regexp.MustCompile("(?:`|^\\s*(?:\\$ |- run: |run: )?|sudo [^\\n]*)make((?: [a-z][a-z0-9-]+)+)")
	target      = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*):(.*?)(?: ## .*)?$`)
	comment     = regexp.MustCompile(`(?:^|\s)//(.*)`)
	buildTag    = regexp.MustCompile(`(?m)^//go:build (.*)$`)
	tagWord     = regexp.MustCompile(`[a-z0-9_]+`)
	// goTest matches the tags and the packages of a command.
	goTest = regexp.MustCompile(`-tags=([a-z0-9,]+)(.*)`)
	// workflowWords matches what a step runs, and the targets of a matrix.
	folder        = regexp.MustCompile(`\./test/[a-z0-9]+/`)
	targetWord    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	workflowWords = regexp.MustCompile(`^(?:.*\bmake |\s+- |\s+target: )(.*)`)
	// otherProject matches the name of a project or of a version, whose paths are not in this repository.
	otherProject = regexp.MustCompile(`(?i)\bv\d+\.\d+|envoy gateway|envoyproxy/|crossplane|tailscale's|tailscale\.com|tailscaled \d|kubernetes|argo ?cd|flux|gateway-api|containerd|containerboot`)
)

// text reports whether people write a file.
func text(file string) bool {
	switch {
	case strings.Contains(file, "/testdata/"), strings.HasPrefix(path.Base(file), "zz_generated"):
		return false
	case strings.HasPrefix(file, "docs/reference/"), strings.Contains(file, "/crds/"), strings.Contains(file, "/xrds/"),
		strings.HasPrefix(file, "package/function/input/") && path.Ext(file) == ".yaml":
		return false // Generated from Go.
	case file == codeowners:
		return false // It has other patterns, which owners checks.
	case strings.HasPrefix(file, "test/references/"):
		return false // The defects of TestCheck.
	}
	switch path.Ext(file) {
	case ".go", ".md", ".yaml", ".yml", ".sh", ".tpl", ".tmpl", ".py", ".lua", ".html", ".txt", "":
		return true
	}
	return false
}

// lines returns the lines of a file that name other files: of Go code the comments, which keep their places.
func lines(file, content string) []string {
	out := strings.Split(content, "\n")
	if path.Ext(file) != ".go" {
		return out
	}
	for i, l := range out {
		m := comment.FindStringSubmatch(l)
		if m == nil {
			out[i] = ""
			continue
		}
		out[i] = m[1]
	}
	return out
}

// folders returns the folders of all files.
func (t tree) folders() map[string]bool {
	out := map[string]bool{}
	for file := range t {
		for d := path.Dir(file); d != "."; d = path.Dir(d) {
			out[d] = true
		}
	}
	return out
}

// exists reports whether a file, a folder or, for a pattern, any of them exists.
func (t tree) exists(name string, folders map[string]bool) bool {
	name = strings.Trim(strings.TrimRight(name, "."), "/")
	if name == "" {
		return true
	}
	if strings.Contains(name, "*") {
		match := func(f string) bool { ok, err := path.Match(name, f); return ok && err == nil }
		return slices.ContainsFunc(slices.Collect(maps.Keys(t)), match) || slices.ContainsFunc(slices.Collect(maps.Keys(folders)), match)
	}
	_, file := t[name]
	return file || folders[name]
}

// paths returns the paths of texts that lead nowhere.
func (t tree) paths(files []string) []reference {
	folders := t.folders()
	var out []reference
	for _, file := range files {
		content := t[file]
		all := lines(file, content)
		for i, l := range all {
			for _, m := range localPath.FindAllStringSubmatch(l, -1) {
				// A placeholder stands for the reader's name, and a test makes a copy of the tree for the name of the guide's kind.
				if strings.ContainsAny(m[1], "<>{}$") || strings.Contains(m[1], "usergroup") || t.exists(m[1], folders) {
					continue
				}
				if foreign(m[1], folders) && otherProject.MatchString(strings.Join(strings.Fields(strings.Join(all[max(0, i-4):min(len(all), i+2)], " ")), " ")) {
					continue
				}
				out = append(out, reference{file, i + 1, m[1]})
			}
		}
	}
	return out
}

// foreign reports whether a path that leads nowhere may be of another project. Go projects have the same folders
// cmd, internal and apis; in the other folders, only paths below folders that are not ours may be.
func foreign(name string, folders map[string]bool) bool {
	top, _, _ := strings.Cut(name, "/")
	return top == "apis" || top == "cmd" || top == "internal" || !folders[path.Dir(strings.TrimRight(name, "./"))]
}

// tests returns the names of tests in texts that no package has.
func (t tree) tests(files []string) []reference {
	functions := map[string]bool{}
	for file, content := range t {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(content, -1) {
				functions[m[1]] = true
			}
		}
	}
	prefix := func(name string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(functions)), func(f string) bool { return strings.HasPrefix(f, name) })
	}
	var out []reference
	for _, file := range files {
		content := t[file]
		if path.Ext(file) == ".py" {
			continue // unittest has names of the same form.
		}
		for i, l := range lines(file, content) {
			for _, m := range testName.FindAllStringSubmatch(l, -1) {
				// -run and a star name all tests with a prefix.
				if functions[m[1]] || (strings.Contains(l, "-run") || strings.Contains(l, m[1]+"*")) && prefix(m[1]) {
					continue
				}
				out = append(out, reference{file, i + 1, m[1]})
			}
		}
	}
	return out
}

// targets returns the targets of the Makefile with their prerequisites.
func (t tree) targets() map[string][]string {
	out := map[string][]string{}
	for _, m := range target.FindAllStringSubmatch(t[makefile], -1) {
		for _, name := range strings.Fields(m[1]) {
			out[name] = strings.Fields(m[2])
		}
	}
	return out
}

// commands returns calls of make whose target does not exist.
func (t tree) commands(files []string) []reference {
	targets := t.targets()
	var out []reference
	for _, file := range files {
		content := t[file]
		prose := path.Ext(file) == ".go" || path.Ext(file) == ".md"
		for i, l := range lines(file, content) {
			for _, m := range makeCommand.FindAllStringSubmatch(l, -1) {
				for n, name := range strings.Fields(m[1]) {
					if _, ok := targets[name]; ok {
						continue
					}
					if prose && (n > 0 || !strings.Contains(m[0], "`")) {
						break // A sentence.
					}
					out = append(out, reference{file, i + 1, "make " + name})
				}
			}
		}
	}
	return out
}

// owners returns the paths of the owners' rules that lead nowhere.
func (t tree) owners() []reference {
	folders := t.folders()
	var out []reference
	for i, l := range strings.Split(t[codeowners], "\n") {
		fields := strings.Fields(l)
		if len(fields) == 0 || strings.HasPrefix(l, "#") || fields[0] == "*" || t.exists(fields[0], folders) {
			continue
		}
		out = append(out, reference{codeowners, i + 1, fields[0]})
	}
	return out
}

// tags returns the tags of tests that the linter does not build, and the packages with a tag that no target tests.
func (t tree) tags() []reference {
	config := struct {
		Run struct {
			Tags []string `json:"build-tags"`
		} `json:"run"`
	}{}
	var out []reference
	if err := yaml.Unmarshal([]byte(t[linter]), &config); err != nil {
		return []reference{{linter, 1, err.Error()}}
	}
	recipes := strings.ReplaceAll(t[makefile], "\\\n", " ")
	for file, content := range t {
		if !strings.HasSuffix(file, "_test.go") || !strings.Contains(content, "//go:build ") {
			continue
		}
		m := buildTag.FindStringSubmatch(content)
		if m == nil {
			continue
		}
		for _, tag := range tagWord.FindAllString(m[1], -1) {
			if tag == "linux" {
				continue
			}
			if !slices.Contains(config.Run.Tags, tag) {
				out = append(out, reference{file, 1, "the linter does not build the tag " + tag})
			}
			if !tested(recipes, tag, path.Dir(file)) {
				out = append(out, reference{file, 1, "no target tests the package with the tag " + tag})
			}
		}
	}
	return out
}

// tested reports whether a recipe tests a package with a tag.
func tested(recipes, tag, dir string) bool {
	for _, m := range goTest.FindAllStringSubmatch(recipes, -1) {
		if !slices.Contains(strings.Split(m[1], ","), tag) {
			continue
		}
		if slices.ContainsFunc(strings.Fields(m[2]), func(f string) bool {
			f = strings.TrimSuffix(strings.TrimPrefix(f, "./"), "/")
			return f == dir || dir == "package/builder" && f == "." || strings.HasSuffix(f, "/...") && strings.HasPrefix(dir+"/", strings.TrimSuffix(f, "..."))
		}) {
			return true
		}
	}
	return false
}

// outside are the targets that no workflow runs, with the reason.
var outside = map[string]string{
	"help": "prints this list", "chart": "release packages charts",
	"demo": "is for people; test-e2e does the same", "demo-down": "is for people", "serve-docs": "is for people",
	"api-facts": "needs a document of Tailscale", "new-kind": "TestScaffold runs the program", "tidy": "rewrites what lint checks",
	"chart-goldens": "rewrites what test-controllers checks", "render-goldens": "rewrites what test-render checks",
	"dev-kind": "needs Docker", "install": "needs a cluster", "push": "release does the same and more", "xpkg": "release does the same and more",
}

// unscheduled returns the targets that no workflow runs, directly or as a prerequisite, and that are not in outside.
func (t tree) unscheduled() []reference {
	targets := t.targets()
	// Recipes that call make, or stages, run those targets, too.
	for name := range targets {
		_, recipe, _ := strings.Cut(t[makefile], "\n"+name+":")
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		for l := range strings.Lines(recipe) {
			if strings.Contains(l, "$(MAKE)") || strings.Contains(l, "go run ./hack/stages ") {
				targets[name] = append(targets[name], strings.Fields(l)...)
			}
		}
	}
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if _, ok := targets[name]; !ok || reached[name] {
			return
		}
		reached[name] = true
		for _, p := range targets[name] {
			reach(p)
		}
	}
	for file, content := range t {
		if file != ".ci/run" && !strings.HasPrefix(file, workflows) {
			continue
		}
		for l := range strings.Lines(content) {
			l, _, _ = strings.Cut(l, "#")
			m := workflowWords.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			for _, w := range strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(" ,[]\n", r) }) {
				if !targetWord.MatchString(w) {
					break
				}
				reach(w)
			}
		}
	}
	var out []reference
	for name, prerequisites := range targets {
		if slices.Contains(prerequisites, "test-%:") {
			// A folder of test/ alone: test-unit and test-programs run all of them.
			continue
		}
		_, ok := outside[name]
		switch {
		case reached[name] && ok:
			out = append(out, reference{makefile, 1, name + " is listed as outside of workflows, and one runs it"})
		case !reached[name] && !ok:
			out = append(out, reference{makefile, 1, "no workflow runs " + name})
		}
	}
	for name := range outside {
		if _, ok := targets[name]; !ok {
			out = append(out, reference{makefile, 1, name + " is listed as outside of workflows, and does not exist"})
		}
	}
	return out
}

// check returns the references that lead nowhere: those in the texts of the given files, and those of owners,
// packages and targets.
func (t tree) check(files []string) []string {
	files = slices.DeleteFunc(slices.Clone(files), func(file string) bool { return !text(file) })
	var out []string
	for _, refs := range [][]reference{t.paths(files), t.tests(files), t.commands(files), t.owners(), t.tags(), t.unscheduled()} {
		for _, r := range refs {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return out
}

// readTree reads all files that git would add: what is in ignored folders is of builds.
func readTree(root fs.FS, files []string) (tree, error) {
	out := tree{}
	for _, f := range files {
		i, err := fs.Stat(root, f)
		if err != nil || !i.Mode().IsRegular() {
			continue // Removed, but not committed; or a link.
		}
		b, err := fs.ReadFile(root, f)
		if err != nil {
			return nil, err
		}
		out[f] = string(b)
	}
	return out, nil
}
