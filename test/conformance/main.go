// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Conformance runs Gateway API's own conformance tests against Envoy Gateway in the lab, once
// without the extension and once with it, and fails when any test or part of a test ends
// differently: the installation of the extension must break nothing. A test that fails in both runs
// is a failure of Envoy Gateway or of the lab. It also fails here, unless known.yaml has a reason.
//
// The tests are upstream's program, unchanged. Their features and exceptions are those of Envoy
// Gateway's own repository. They are in suite.go, the installation in lab.go, the program's output
// in events.go and the verdict in compare.go.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	Version string `default:"v0.1.0-dev" help:"Version of the extension to build and install."`
	Out     string `default:"_out" help:"Folder for conformance.json, and for the reports and logs of both runs."`
	Run     string `help:"Run only one test, such as HTTPRouteSimpleSameNamespace."`
	Keep    bool   `help:"Leave the lab up at the end, for inspection or another run."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("conformance"), kong.Description("Compares Envoy Gateway with and without the extension, by Gateway API's conformance tests."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.FatalIfErrorf(c.run(ctx))
}

func (c *cli) run(ctx context.Context) (err error) {
	reasons, err := readKnown("test/conformance/known.yaml")
	if err != nil {
		return err
	}
	out, err := filepath.Abs(c.Out)
	if err != nil {
		return errors.Wrapf(err, "cannot find folder %q", c.Out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return errors.Wrap(err, "cannot create folder for results")
	}
	if !c.Keep {
		defer func() {
			err = errors.Join(err, stream(context.WithoutCancel(ctx), "go", "run", "./cluster/lab", "down"))
		}()
	}
	progress("starting the lab")
	l, err := labUp(ctx, c.Version, out)
	if err != nil {
		return err
	}

	progress("running all tests without the extension")
	if err := l.without(ctx); err != nil {
		return err
	}
	baseline, err := l.test(ctx, "without", c.Run)
	if err != nil {
		return err
	}

	progress("running all tests with the extension")
	if err := l.with(ctx); err != nil {
		return err
	}
	extended, err := l.test(ctx, "with", c.Run)
	if err != nil {
		return err
	}
	hooks, err := l.hooks(ctx)
	if err != nil {
		return err
	}

	r := compare(baseline, extended, reasons, c.Run != "")
	r.Version, r.Hooks = c.Version, hooks
	if err := r.write(filepath.Join(out, "conformance.json")); err != nil {
		return err
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	return r.verdict()
}

var began = time.Now()

func progress(format string, a ...any) {
	fmt.Printf("%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, a...))
}
