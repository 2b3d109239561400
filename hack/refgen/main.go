// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command refgen writes the reference pages of docs/reference from
// CustomResourceDefinitions, examples and charts: a page a kind, an index, and a page of the values of
// each chart.
package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	Out      string   `arg:"" help:"Folder to write pages to. Pages of removed kinds are deleted." name:"out" type:"existingdir"`
	CRDs     []string `help:"Folders of CustomResourceDefinitions, one in each file." name:"crds" required:"" type:"existingdir"`
	Charts   []string `help:"Folders of charts." name:"charts" type:"existingdir"`
	Examples string   `help:"Folder of examples, and of folders of them. Pages link all that have an object of their kind." name:"examples" type:"existingdir"`
	Managed  string   `help:"Folder of examples that pages show, called KIND.yaml in lower case." name:"managed" type:"existingdir"`

	Example map[string]string `help:"Example that the page of another kind shows, as KIND=FILE." name:"example"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("refgen"), kong.Description("Write reference pages of CustomResourceDefinitions and charts."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	var kinds []kind
	for _, dir := range c.CRDs {
		ks, err := readKinds(dir)
		if err != nil {
			return err
		}
		kinds = append(kinds, ks...)
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name)) })
	all, err := readExamples(c.Examples)
	if err != nil {
		return err
	}
	pages := map[string][]byte{}
	for _, k := range kinds {
		file, err := filepath.Abs(cmp.Or(c.Example[k.name], filepath.Join(c.Managed, strings.ToLower(k.name)+".yaml")))
		if err != nil {
			return errors.Wrap(err, "cannot find example")
		}
		b, err := os.ReadFile(file)
		if err != nil && (!os.IsNotExist(err) || c.Example[k.name] != "") {
			return errors.Wrap(err, "cannot read example")
		}
		k.example = withoutLicence(b)
		if k.others, err = c.links(all, k, file); err != nil {
			return err
		}
		pages[k.file()] = k.page()
	}
	charts := make([]*chart, len(c.Charts))
	for i, dir := range c.Charts {
		var err error
		if charts[i], err = readChart(dir); err != nil {
			return err
		}
		if pages[charts[i].file()], err = charts[i].page(); err != nil {
			return err
		}
	}
	pages["README.md"] = index(kinds, charts)
	return write(c.Out, pages)
}

// readKinds reads the kinds of a folder.
func readKinds(dir string) ([]kind, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot list CustomResourceDefinitions")
	}
	if len(files) == 0 {
		return nil, errors.Errorf("no CustomResourceDefinition in %q", dir)
	}
	var out []kind
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read CustomResourceDefinition")
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, crd); err != nil {
			return nil, errors.Wrapf(err, "cannot parse %q", f)
		}
		out = append(out, newKind(crd))
	}
	return out, nil
}

// write makes a folder hold the pages, and no others.
func write(dir string, pages map[string][]byte) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return errors.Wrap(err, "cannot list pages")
	}
	for _, f := range old {
		if _, ok := pages[filepath.Base(f)]; ok {
			continue
		}
		if err := os.Remove(f); err != nil {
			return errors.Wrap(err, "cannot remove page")
		}
	}
	for name, b := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return errors.Wrap(err, "cannot write page")
		}
	}
	return nil
}
