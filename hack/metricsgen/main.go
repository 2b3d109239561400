// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command metricsgen writes docs/reference/metrics.md: the metrics of every process, from the
// collectors that the process registers and from the source that creates them. It fails if the
// source creates a metric that no process of processes.go registers.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	Out string `arg:"" help:"Page to write." name:"out"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("metricsgen"), kong.Description("Write the reference page of metrics."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	b, err := generate()
	if err != nil {
		return err
	}
	return errors.Wrap(os.WriteFile(c.Out, b, 0o600), "cannot write page")
}

// generate returns the page.
func generate() ([]byte, error) {
	dirs, err := sources(ours, crossplanes)
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	for _, dir := range dirs {
		if err := scanDir(dir, types); err != nil {
			return nil, err
		}
	}
	ps, err := describe(processes(), types)
	if err != nil {
		return nil, err
	}
	return page(ps), nil
}
