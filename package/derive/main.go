// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command derive writes the files of packages that are derived from others when packages are built, to look at
// or to compare between two commits.
package main

import (
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

type cli struct {
	Out string `arg:"" help:"Folder to write to. It is created." default:"_out/derived"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("derive"), kong.Description("Write the configuration of claims and the definitions of functions' inputs, as packages have them."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	for folder, files := range map[string]func() (map[string][]byte, error){
		"package/configuration-claims": claims.Files,
		"package/function/input":       input.Files,
	} {
		all, err := files()
		if err != nil {
			return errors.Wrapf(err, "cannot derive the files of %s", folder)
		}
		for f, b := range all {
			path := filepath.Join(c.Out, folder, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				return errors.Wrap(err, "cannot make folder")
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				return errors.Wrap(err, "cannot write file")
			}
		}
	}
	return nil
}
