// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command xrdgen builds CompositeResourceDefinitions from the CustomResourceDefinitions of
// apis/gateway that controller-gen builds, for each of the two configurations: composites in a
// namespace, and claims. The Go types are the only source of both schemas and columns. The rest
// of the configuration of claims is derived from the other configuration.
package main

import (
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
)

type cli struct {
	CRDs          string `arg:"" help:"Folder of CustomResourceDefinitions, one in each file." name:"crds" type:"existingdir"`
	Configuration string `arg:"" help:"Folder of the configuration. CompositeResourceDefinitions are written to xrds, one in each file; Compositions are read from compositions." name:"configuration" type:"existingdir"`
	Claims        string `arg:"" help:"Folder of the configuration of claims. All files except crossplane.yaml are written." name:"claims" type:"existingdir"`

	Inputs   string `help:"Folder of CustomResourceDefinitions of functions' inputs." type:"existingdir"`
	InputsTo string `help:"Folder of the function's package that the inputs are written to."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("xrdgen"), kong.Description("Turn CustomResourceDefinitions into CompositeResourceDefinitions, of composites in a namespace and of claims."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	if c.Inputs != "" {
		if err := inputs(c.Inputs, c.InputsTo); err != nil {
			return err
		}
	}
	// Kinds that have a claim.
	claimed := map[string]bool{}
	err := each(filepath.Join(c.CRDs, "*.yaml"), func(name string, b []byte) error {
		xrd, err := convert(b)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(c.Configuration, "xrds", name), xrd); err != nil {
			return err
		}
		out := filepath.Join(c.Claims, "xrds", name)
		if xrd.Spec.Scope != apiextv2.CompositeResourceScopeNamespaced {
			return write(out, xrd)
		}
		claimed[xrd.Spec.Names.Kind] = true
		legacy, err := claims(xrd)
		if err != nil {
			return err
		}
		return write(out, legacy)
	})
	if err != nil {
		return err
	}
	err = each(filepath.Join(c.Configuration, "compositions", "*.yaml"), func(name string, b []byte) error {
		composition, err := claimsComposition(b, claimed)
		if err != nil {
			return err
		}
		return write(filepath.Join(c.Claims, "compositions", name), composition)
	})
	if err != nil {
		return err
	}
	// The managed kinds are the same.
	return each(filepath.Join(c.Configuration, "activationpolicy.yaml"), func(name string, b []byte) error {
		return save(filepath.Join(c.Claims, name), b)
	})
}

// each does something with every file of a pattern. One that fails is named.
func each(pattern string, fn func(name string, b []byte) error) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return errors.Wrap(err, "cannot list files")
	}
	if len(files) == 0 {
		return errors.Errorf("there is no %q", pattern)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return errors.Wrap(err, "cannot read file")
		}
		if err := fn(filepath.Base(f), b); err != nil {
			return errors.Wrapf(err, "cannot convert %q", f)
		}
	}
	return nil
}

// write writes an object as a generated file.
func write(path string, o any) error {
	b, err := encode(o)
	if err != nil {
		return err
	}
	return save(path, b)
}

func save(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return errors.Wrap(err, "cannot make folder")
	}
	return errors.Wrap(os.WriteFile(path, b, 0o600), "cannot write file")
}
