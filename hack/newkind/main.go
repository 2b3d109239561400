// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command newkind scaffolds a managed kind: its types, the calls of Tailscale's API, the
// controller with a test, its registration, an example and an integration case. The reference page
// comes with make generate.
package main

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

//go:embed templates
var templates embed.FS

type cli struct {
	Name   string `arg:"" help:"Kind in singular and PascalCase, such as UserGroup."`
	Plural string `help:"Plural of the kind in PascalCase, such as Policies. Default: the kind with an s."`
	Scope  string `default:"all" help:"OAuth scope that Tailscale's API requires for calls on the kind."`
	Root   string `default:"." help:"Folder of the repository." type:"existingdir"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("newkind"), kong.Description("Scaffold a managed kind."))
	files, err := c.run()
	k.FatalIfErrorf(err)
	for _, f := range files {
		fmt.Println("wrote", f)
	}
	fmt.Print(next)
}

// next is printed after the scaffold: the remaining steps.
const next = `
Next, see "A new kind" in CONTRIBUTING.md:
  1. the fields of the types, and the calls of Tailscale's API with their source
  2. the simulator: routes and scope in internal/tailnetsim
  3. the OAuth scope in docs/credentials.md
  4. make generate, and go test ./test/gitops -update, which writes the health checks of deploy
  5. make test-unit, and make test-integration
`

// names are the forms of a kind's name that templates use.
type names struct {
	Kind         string // UserGroup
	Camel        string // userGroup
	Lower        string // usergroup
	Words        string // user group
	Plural       string // UserGroups
	PluralCamel  string // userGroups
	PluralLower  string // usergroups
	PluralWords  string // user groups
	Path         string // user-groups
	Article      string // a
	ArticleUpper string // A
	Scope        string
}

// pascalCase matches kinds and their plurals.
var pascalCase = regexp.MustCompile(`^[A-Z][a-zA-Z]*[a-z]$`)

func newNames(kind, plural, scope string) (names, error) {
	if plural == "" && strings.HasSuffix(kind, "s") {
		return names{}, errors.Errorf("cannot use %q: a kind is singular; set --plural if this one is", kind)
	}
	plural = cmp.Or(plural, kind+"s")
	for _, n := range []string{kind, plural} {
		if !pascalCase.MatchString(n) {
			return names{}, errors.Errorf("cannot use %q: a kind is a word in PascalCase, such as UserGroup", n)
		}
	}
	if plural == kind {
		return names{}, errors.Errorf("cannot use %q for the kind and its plural: the functions of the client need two names", kind)
	}
	n := names{
		Kind: kind, Camel: camel(kind), Lower: strings.ToLower(kind), Words: strings.Join(words(kind), " "),
		Plural: plural, PluralCamel: camel(plural), PluralLower: strings.ToLower(plural), PluralWords: strings.Join(words(plural), " "),
		Path:    strings.Join(words(plural), "-"),
		Article: "a", ArticleUpper: "A",
		Scope: scope,
	}
	if strings.ContainsRune("aeio", rune(n.Words[0])) {
		n.Article, n.ArticleUpper = "an", "An"
	}
	return n, nil
}

// camel returns a name in PascalCase in camelCase.
func camel(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// words returns the words of a name in PascalCase, in lower case.
func words(name string) []string {
	var out []string
	for _, r := range name {
		if unicode.IsUpper(r) {
			out = append(out, "")
		}
		out[len(out)-1] += string(unicode.ToLower(r))
	}
	return out
}

// files returns the templates of new files, by path.
func (n names) files() map[string]string {
	return map[string]string{
		"apis/tailnet/v1alpha1/" + n.Lower + "_types.go":              "types.go.tmpl",
		"internal/tailscale/" + n.PluralLower + ".go":                 "client.go.tmpl",
		"internal/controller/" + n.Lower + "/" + n.Lower + ".go":      "controller.go.tmpl",
		"internal/controller/" + n.Lower + "/setup.go":                "setup.go.tmpl",
		"internal/controller/" + n.Lower + "/" + n.Lower + "_test.go": "controller_test.go.tmpl",
		"test/integration/kind_" + n.Lower + "_test.go":               "case_test.go.tmpl",
		"examples/managed/" + n.Lower + ".yaml":                       "example.yaml.tmpl",
	}
}

// An insertion adds a line to an existing file, before the first line that contains an anchor
// after the first that contains another one.
type insertion struct {
	file, section, anchor, line string
}

// insertions returns the lines that register a kind.
func (n names) insertions() []insertion {
	return []insertion{
		{"internal/controller/setup.go", "import (", "\n)", fmt.Sprintf("\t%q", products.Module+"/internal/controller/"+n.Lower)},
		{"internal/controller/setup.go", "return []kinds.Registration{", "\n\t}", fmt.Sprintf("\t\t%s.Kind(o),", n.Lower)},
	}
}

// run writes all files, or none if one of them cannot be rendered. It returns their paths.
func (c *cli) run() ([]string, error) {
	n, err := newNames(c.Name, c.Plural, c.Scope)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for path, name := range n.files() {
		if _, err := os.Stat(filepath.Join(c.Root, path)); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Errorf("%s exists already", path)
		}
		if out[path], err = render(name, n); err != nil {
			return nil, err
		}
	}
	for _, i := range n.insertions() {
		if out[i.file] == nil {
			if out[i.file], err = os.ReadFile(filepath.Join(c.Root, i.file)); err != nil {
				return nil, errors.Wrap(err, "cannot read a file that lists kinds")
			}
		}
		if out[i.file], err = i.apply(out[i.file]); err != nil {
			return nil, err
		}
	}
	if err := n.allow(c.Root, out); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(out))
	for path, b := range out {
		if filepath.Ext(path) == ".go" {
			if b, err = format.Source(b); err != nil {
				return nil, errors.Wrapf(err, "cannot format %s", path)
			}
		}
		file := filepath.Join(c.Root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return nil, errors.Wrap(err, "cannot make a folder")
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			return nil, errors.Wrap(err, "cannot write a file")
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}

func render(name string, n names) ([]byte, error) {
	t, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse a template")
	}
	b := &bytes.Buffer{}
	err = t.Execute(b, n)
	return b.Bytes(), errors.Wrapf(err, "cannot render %s", name)
}

func (i insertion) apply(b []byte) ([]byte, error) {
	text := string(b)
	at := strings.Index(text, i.section)
	if at < 0 {
		return nil, errors.Errorf("%s has no %q any more: correct hack/newkind", i.file, i.section)
	}
	end := strings.Index(text[at:], i.anchor)
	if end < 0 {
		return nil, errors.Errorf("%s has no %q after %q any more: correct hack/newkind", i.file, i.anchor, i.section)
	}
	at += end
	return []byte(text[:at] + "\n" + i.line + text[at:]), nil
}

// enum matches the kinds that a provider config may allow to a namespace.
var enum = regexp.MustCompile(`(// \+kubebuilder:validation:Enum=)([A-Za-z;]+)(\ntype ManagedKind string)`)

// allow adds the kind to those that a provider config may allow to a namespace.
func (n names) allow(root string, out map[string][]byte) error {
	const path = "apis/tailnet/v1alpha1/providerconfig_types.go"
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return errors.Wrap(err, "cannot read the kinds of provider configs")
	}
	m := enum.FindSubmatch(b)
	if m == nil {
		return errors.Errorf("%s has no enum of ManagedKind any more: correct hack/newkind", path)
	}
	kinds := append(strings.Split(string(m[2]), ";"), n.Kind)
	slices.Sort(kinds)
	out[path] = bytes.Replace(b, m[0], []byte(string(m[1])+strings.Join(kinds, ";")+string(m[3])), 1)
	return nil
}
