// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// pluginName is the binary of the kubectl plugin.
const pluginName = "kubectl-tailscale_gateway"

// lab is where the lab's parts are.
type lab struct {
	cache            string // a folder that outlives labs
	kubeconfig       string // a file, for use from this host
	registry         string // host:port as this host reaches it
	clusterRegistry  string // host:port as the cluster reaches it
	tailnetURL       string // the simulated Tailscale, as the cluster reaches it
	tailnetAPI       string // the same, as this host reaches it
	domain           string // of the tailnet
	clientID         string
	clientSecretFile string
	crossplaneChart  string // a folder

	labBin    string
	pluginBin string

	kubectlBin    string
	helmBin       string
	crossplaneBin string
}

// findLab asks the lab that is up where its parts are. Flags are those of the lab's
// command line that say what it is about.
func findLab(ctx context.Context, flags ...string) (*lab, error) {
	out, err := output(ctx, nil, nil, "go", slices.Concat([]string{"run", "./cluster/lab"}, flags, []string{"env"})...)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the lab's environment")
	}
	env, err := exports(out)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the lab's environment")
	}
	l := &lab{
		cache:            env["CACHE"],
		kubeconfig:       env["KUBECONFIG"],
		registry:         env["REGISTRY"],
		clusterRegistry:  env["REGISTRY_IN_CLUSTER"],
		tailnetURL:       env["TAILNET_API_IN_CLUSTER"],
		tailnetAPI:       env["TAILNET_API"],
		domain:           env["TAILNET_DOMAIN"],
		clientID:         env["TAILNET_CLIENT_ID"],
		clientSecretFile: env["TAILNET_CLIENT_SECRET_FILE"],
	}
	// Waits ask again and again: what they run is built once, where it is found again.
	dir := filepath.Join(l.cache, "demo")
	if _, err := output(ctx, nil, nil, "go", "build", "-o", dir+string(filepath.Separator), "./cluster/lab", "./cmd/"+pluginName); err != nil {
		return nil, errors.Wrap(err, "cannot build the lab's command line")
	}
	l.labBin, l.pluginBin = filepath.Join(dir, "lab"), filepath.Join(dir, pluginName)
	for _, b := range []struct {
		name string
		path *string
	}{{"kubectl", &l.kubectlBin}, {"helm", &l.helmBin}, {"crossplane", &l.crossplaneBin}} {
		p, err := output(ctx, nil, nil, l.labBin, "bin", b.name)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot find %s", b.name)
		}
		*b.path = strings.TrimSpace(p)
	}
	chart, err := output(ctx, nil, nil, l.labBin, "chart", "crossplane")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find Crossplane's chart")
	}
	l.crossplaneChart = strings.TrimSpace(chart)
	return l, nil
}

// exports reads lines of export NAME="VALUE".
func exports(s string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(s) {
		name, quoted, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok {
			return nil, errors.Errorf("no assignment in %q", line)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read value of %s", name)
		}
		out[name] = value
	}
	return out, nil
}

func (l *lab) env() []string { return []string{"KUBECONFIG=" + l.kubeconfig} }

// commandEnv returns the environment of a shell that finds the lab's programs by their names.
func (l *lab) commandEnv() []string {
	path := []string{filepath.Dir(l.kubectlBin), filepath.Dir(l.helmBin), filepath.Dir(l.crossplaneBin), os.Getenv("PATH")}
	return append(l.env(), "PATH="+strings.Join(path, string(filepath.ListSeparator)))
}

func (l *lab) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return output(ctx, stdin, l.env(), l.kubectlBin, args...)
}

// check runs the plugin's check of the installation, without the objects of users.
func (l *lab) check(ctx context.Context, args ...string) error {
	_, err := output(ctx, nil, l.env(), l.pluginBin, append([]string{"check", "--no-objects"}, args...)...)
	return err
}

func (l *lab) helm(ctx context.Context, args ...string) (string, error) {
	return output(ctx, nil, l.env(), l.helmBin, args...)
}

func (l *lab) crossplane(ctx context.Context, args ...string) (string, error) {
	return output(ctx, nil, l.env(), l.crossplaneBin, args...)
}
