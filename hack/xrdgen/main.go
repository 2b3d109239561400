// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command xrdgen builds CompositeResourceDefinitions of composites in a namespace from the
// CustomResourceDefinitions of apis/gateway that controller-gen builds. The Go types are the only source of
// both schemas and columns.
package main

import (
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	CRDs string `arg:"" help:"Folder of CustomResourceDefinitions, one in each file." name:"crds" type:"existingdir"`
	XRDs string `arg:"" help:"Folder to write CompositeResourceDefinitions to, one in each file." name:"xrds"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("xrdgen"), kong.Description("Turn CustomResourceDefinitions into CompositeResourceDefinitions of composites in a namespace."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	files, err := filepath.Glob(filepath.Join(c.CRDs, "*.yaml"))
	if err != nil {
		return errors.Wrap(err, "cannot list files")
	}
	if len(files) == 0 {
		return errors.Errorf("no CustomResourceDefinition is in %q", c.CRDs)
	}
	if err := os.MkdirAll(c.XRDs, 0o750); err != nil {
		return errors.Wrap(err, "cannot make folder")
	}
	for _, f := range files {
		if err := c.convert(f); err != nil {
			return errors.Wrapf(err, "cannot convert %q", f)
		}
	}
	return nil
}

// convert writes the definition of a file.
func (c *cli) convert(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "cannot read file")
	}
	xrd, err := convert(b)
	if err != nil {
		return err
	}
	out, err := encode(xrd)
	if err != nil {
		return err
	}
	return errors.Wrap(os.WriteFile(filepath.Join(c.XRDs, filepath.Base(file)), out, 0o600), "cannot write file")
}
