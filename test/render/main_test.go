// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// root of the source tree.
	root = "../.."

	// startLimit is how long a function may take until it listens.
	startLimit = time.Minute

	// stopLimit is how long a function may take to end.
	stopLimit = time.Minute
)

// tools are the programs and files that all cases share.
var tools struct {
	// crossplane is the command line, core the program that renders for it.
	crossplane string
	core       string

	// functions is a file with the addresses of all functions.
	functions string

	// cache holds the schemas of Crossplane's own kinds, so that the command line does not download
	// them.
	cache string
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "render: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the functions and runs the cases.
func run(m *testing.M) (code int, err error) {
	for name, path := range map[string]*string{"TEST_ASSET_CROSSPLANE": &tools.crossplane, "TEST_ASSET_CROSSPLANE_CORE": &tools.core} {
		if *path = os.Getenv(name); *path == "" {
			return 1, errors.Errorf("%s is not set: run make test-render", name)
		}
	}
	// Sockets need a short path.
	dir, err := os.MkdirTemp("", "render")
	if err != nil {
		return 1, errors.Wrap(err, "cannot create a folder")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tools.cache = filepath.Join(dir, "cache")
	if err := fillCache(ctx); err != nil {
		return 1, err
	}
	stop, err := startFunction(ctx, dir)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// crossplaneImage is the image whose schemas "crossplane resource validate" uses. It is never
// pulled: the schemas are in the cache under this name.
const crossplaneImage = "xpkg.crossplane.io/crossplane/crossplane:v0.0.0"

// fillCache writes the schemas of Crossplane's module into the command line's cache
// (github.com/crossplane/cli cmd/crossplane/validate, LocalCache).
func fillCache(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/crossplane/crossplane/v2")
	cmd.Dir = filepath.Join(root, "cluster", "tools", "crossplane")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		return errors.Wrap(err, "cannot find Crossplane's module")
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "cluster", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Errorf("cannot find the schemas of Crossplane's kinds: %v", err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return errors.Wrap(err, "cannot read a schema of Crossplane's")
		}
		all.Write(b)
		all.WriteString("\n---\n")
	}
	dir := filepath.Join(tools.cache, strings.ReplaceAll(crossplaneImage, ":", "@"))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return errors.Wrap(err, "cannot create the cache")
	}
	return errors.Wrap(os.WriteFile(filepath.Join(dir, "package.yaml"), []byte(all.String()), 0o600), "cannot fill the cache")
}

// startFunction builds and starts the function, and records its address. The returned function ends
// it.
func startFunction(ctx context.Context, dir string) (func() error, error) {
	stop := func() error { return nil }
	built := filepath.Join("_out", "render", "function")
	build := exec.CommandContext(ctx, "go", "build", "-o", built, "./cmd/function")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return stop, errors.Errorf("cannot build the function: %v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(root, "package", "function", "crossplane.yaml"))
	if err != nil {
		return stop, errors.Wrap(err, "cannot read the function's metadata")
	}
	meta := struct{ Metadata struct{ Name string } }{}
	if err := yaml.Unmarshal(b, &meta); err != nil {
		return stop, errors.Wrap(err, "cannot parse the function's metadata")
	}
	socket := filepath.Join(dir, "function")
	c := exec.CommandContext(ctx, filepath.Join(root, built), "--insecure", "--network=unix", "--address="+socket, "--metrics-address=")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return stop, errors.Wrap(err, "cannot start the function")
	}
	stop = func() error { return end(c) }
	if err := listens(ctx, socket); err != nil {
		return stop, errors.Wrap(err, "the function does not listen")
	}
	// A configuration refers to a package by its repository.
	doc := fmt.Sprintf("apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: tailscale-gateway-%s\n  annotations:\n"+
		"    render.crossplane.io/runtime: Development\n    render.crossplane.io/runtime-development-target: unix://%s\n"+
		"spec:\n  package: ghcr.io/tailscale-gateway/%s:v0.0.0\n", meta.Metadata.Name, socket, meta.Metadata.Name)
	tools.functions = filepath.Join(dir, "functions.yaml")
	return stop, errors.Wrap(os.WriteFile(tools.functions, []byte(doc), 0o600), "cannot record the function")
}

// end ends a process and waits for it.
func end(c *exec.Cmd) error {
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Wrapf(err, "cannot end %q", c.Path)
	}
	late := time.AfterFunc(stopLimit, func() { _ = c.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		return errors.Wrapf(err, "cannot wait for %q", c.Path)
	}
	return nil
}

// listens waits until a server listens on a socket.
func listens(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return errors.Join(io.Closer(c).Close())
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(err, "cannot reach it")
		case <-t.C:
		}
	}
}
