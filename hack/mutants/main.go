// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Mutants shows that the tests of functions and of the proxies' objects notice faults. It runs
// "go test" once for each entry of a table of one-line faults, with the fault laid over the
// source by -overlay: no file of the tree changes. A fault that every test passes with has
// survived, and fails the program, as does one whose line is no longer in its file.
//
// A golden that stores a digest instead of an object could hide a change. The table is how a
// change of the goldens' format shows that it hides none: the same faults are caught before it
// and after.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A mutant is a fault in one file.
type mutant struct {
	// name says what is wrong.
	name string

	// file is relative to the root of the source tree. It contains old exactly once.
	file string

	// old is the text that new replaces.
	old, new string

	// packages have a test that must fail, relative to the root.
	packages []string
}

func main() {
	expr := flag.String("only", "", "Run the mutants whose name or file matches this regular expression.")
	list := flag.Bool("list", false, "Check that each mutant still applies to its file, and run no test.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *expr, *list)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

// run tests every mutant that matches a pattern, and returns an error unless all are caught.
func run(ctx context.Context, expr string, list bool) error {
	pattern, err := regexp.Compile(expr)
	if err != nil {
		return errors.Wrap(err, "cannot parse --only")
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return errors.Wrap(err, "cannot make a folder")
	}
	defer os.RemoveAll(dir)

	var chosen []mutant
	var overlays []string
	packages := map[string]bool{}
	for i, m := range mutants {
		if !pattern.MatchString(m.name) && !pattern.MatchString(m.file) {
			continue
		}
		overlay, err := m.write(dir, i)
		if err != nil {
			return errors.Wrapf(err, "cannot apply mutant %q", m.name)
		}
		chosen, overlays = append(chosen, m), append(overlays, overlay)
		for _, p := range m.packages {
			packages[p] = true
		}
	}
	if list {
		fmt.Printf("%d mutants apply\n", len(chosen))
		return nil
	}
	if err := checkHealthy(ctx, packages); err != nil {
		return err
	}

	var survived []string
	for i, m := range chosen {
		began := time.Now()
		caught, err := m.test(ctx, overlays[i])
		if err != nil {
			return errors.Wrapf(err, "cannot test mutant %q", m.name)
		}
		verdict := "caught  "
		if !caught {
			verdict, survived = "SURVIVED", append(survived, m.name)
		}
		fmt.Printf("%s %5.1fs  %s: %s\n", verdict, time.Since(began).Seconds(), m.file, m.name)
	}
	fmt.Printf("%d of %d mutants caught\n", len(chosen)-len(survived), len(chosen))
	if len(survived) > 0 {
		return errors.Errorf("no test notices: %s", strings.Join(survived, "; "))
	}
	return nil
}

// write stores the mutant's file and an overlay that puts it in place of the original. It
// returns the overlay's path.
func (m mutant) write(dir string, i int) (string, error) {
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", errors.Wrap(err, "cannot find the file")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "cannot read the file")
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", errors.Errorf("%s contains %d times, not once: %s", m.file, n, m.old)
	}
	fault := filepath.Join(dir, fmt.Sprintf("%d.go", i))
	if err := os.WriteFile(fault, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", errors.Wrap(err, "cannot write the fault")
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: fault}})
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the overlay")
	}
	out := filepath.Join(dir, fmt.Sprintf("%d.json", i))
	return out, errors.Wrap(os.WriteFile(out, overlay, 0o600), "cannot write the overlay")
}

// buildFailed is what go test prints for a package that does not compile.
const buildFailed = "[build failed]"

// test runs the mutant's tests and reports whether one fails. A mutant that does not compile
// proves nothing: that is an error.
func (m mutant) test(ctx context.Context, overlay string) (caught bool, err error) {
	args := append([]string{"-overlay=" + overlay, "-failfast"}, m.packages...)
	out, err := goTest(ctx, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case !errors.As(err, &exit) || bytes.Contains(out, []byte(buildFailed)):
		return false, errors.Wrapf(err, "%s", out)
	}
	return true, nil
}

// checkHealthy runs the tests of packages without a mutant. They must pass: a test that fails
// anyway catches nothing.
func checkHealthy(ctx context.Context, packages map[string]bool) error {
	args := make([]string, 0, len(packages))
	for p := range packages {
		args = append(args, p)
	}
	out, err := goTest(ctx, args...)
	return errors.Wrapf(err, "tests fail without a mutant: %s", out)
}

// goTest runs go test without vet, which would refuse some mutants before a test sees them.
func goTest(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off"}, args...)...).CombinedOutput()
}
