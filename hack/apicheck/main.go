// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command apicheck compares the facts of Tailscale's API that tests rely on with
// Tailscale's OpenAPI document, or takes them from it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/hack/apicheck/facts"
)

type cli struct {
	Spec  string `help:"Tailscale's OpenAPI document, from https://api.tailscale.com/api/v2?outputOpenapiSchema=true." required:"" type:"existingfile"`
	Facts string `default:"hack/apicheck/facts/tailscale.yaml" help:"File of the facts." type:"path"`
	Write bool   `help:"Write the facts instead of comparing them."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("apicheck"), kong.Description("Compare the facts of Tailscale's API with its OpenAPI document."))
	k.FatalIfErrorf(c.run(os.Stdout))
}

// run returns an error when the facts are not those of the document.
func (c *cli) run(out io.Writer) error {
	b, err := os.ReadFile(c.Spec)
	if err != nil {
		return errors.Wrap(err, "cannot read OpenAPI document")
	}
	d, err := facts.FromOpenAPI(b)
	if err != nil {
		return err
	}
	want, err := d.Format()
	if err != nil {
		return err
	}
	if c.Write {
		return errors.Wrap(os.WriteFile(c.Facts, want, 0o600), "cannot write facts")
	}
	existing, err := os.ReadFile(c.Facts)
	if err != nil {
		return errors.Wrap(err, "cannot read facts")
	}
	if bytes.Equal(want, existing) {
		_, err := fmt.Fprintf(out, "%s has the facts of all %d operations\n", c.Facts, len(d.Operations))
		return err
	}
	old, err := facts.Parse(existing)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "-facts, +document:\n%s", cmp.Diff(old, d)); err != nil {
		return err
	}
	return errors.New("the facts are not those of the document: look at the changes, then write them with --write")
}
