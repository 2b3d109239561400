// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// A Lab is a running lab.
type Lab struct {
	program  string
	demo     string
	version  string
	env      map[string]string
	progress func(format string, args ...any)
}

// OpenLab starts a lab with a version of the project's packages, of a flavour. Programs go to the
// folder bin. The caller must call Close, also after an error.
func OpenLab(ctx context.Context, bin, version, flavour string, progress func(string, ...any)) (*Lab, error) {
	l := &Lab{program: filepath.Join(bin, "lab"), demo: filepath.Join(bin, "demo"), version: version, progress: progress}
	for program, pkg := range map[string]string{l.program: "./cluster/lab", l.demo: "./cluster/demo"} {
		if _, err := run(ctx, nil, "go", "build", "-o", program, pkg); err != nil {
			return l, err
		}
	}
	progress("installing the packages in a lab")
	if _, err := run(ctx, nil, l.demo, "install", "--version="+version, "--flavour="+flavour); err != nil {
		return l, err
	}
	out, err := l.lab(ctx, "env")
	if err != nil {
		return l, err
	}
	l.env, err = exports(out)
	return l, err
}

// Close stops the lab.
func (l *Lab) Close(ctx context.Context) error {
	_, err := l.lab(ctx, "down")
	return err
}

func (l *Lab) lab(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, l.program, args...)
}

func (l *Lab) kubectl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, l.program, append([]string{"kubectl"}, args...)...)
}

// apply applies objects as their owner.
func (l *Lab) apply(ctx context.Context, manifest string) error {
	_, err := run(ctx, []byte(manifest), l.program, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// applyAll applies the manifests of all names at once.
func (l *Lab) applyAll(ctx context.Context, names []string, manifest func(name string) string) error {
	var all strings.Builder
	for _, name := range names {
		all.WriteString(manifest(name))
	}
	return l.apply(ctx, all.String())
}

// start starts a load on a URL, from the tailnet or from the cluster.
func (l *Lab) start(ctx context.Context, source, url string, args ...string) (*load.Process, error) {
	return load.StartProcess(ctx, l.program, append([]string{"--from=" + source, url}, args...)...)
}

// until polls until check returns nil, at most for upLimit.
func (l *Lab) until(ctx context.Context, description string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	return errors.Wrapf(retry.Until(ctx, 500*time.Millisecond, check), "%s: not within %s", description, upLimit)
}

// condition returns an error unless a condition of an object is True.
func (l *Lab) condition(ctx context.Context, object, conditionType string) error {
	out, err := l.kubectl(ctx, "get", "--namespace="+Namespace, object, "-o=jsonpath={.status.conditions[?(@.type==\""+conditionType+"\")].status}")
	if err != nil {
		return err
	}
	if out != "True" {
		return errors.Errorf("%s: %s is %q", object, conditionType, out)
	}
	return nil
}

// exports parses lines of export NAME="VALUE", and skips others.
func exports(s string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(s) {
		assignment, ok := strings.CutPrefix(strings.TrimSpace(line), "export ")
		if !ok {
			continue
		}
		name, quoted, _ := strings.Cut(assignment, "=")
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read the value of %s", name)
		}
		out[name] = value
	}
	return out, nil
}

// run runs a program and returns its stdout. The error holds the end of stderr.
func run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.Wrapf(err, "%s %s: %s", filepath.Base(name), strings.Join(args, " "), tail(stderr.String()+out.String()))
	}
	return out.String(), nil
}

// tail returns the end of a program's output, which has its errors.
func tail(s string) string {
	s = strings.TrimSpace(s)
	const most = 2000
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return s
}
