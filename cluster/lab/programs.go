// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

// program returns the path of a built program.
func program(r runtime, name string) (string, error) {
	bin, err := builder(r.paths).Binaries()
	if err != nil {
		return "", err
	}
	path, ok := bin[name]
	if !ok {
		return "", errors.Errorf("cannot find program %q: the lab has no program of that name", name)
	}
	if _, err := os.Stat(path); err != nil {
		return "", errors.Wrapf(err, "cannot find program %q: run `lab build %s`", name, tools.Of(name))
	}
	return path, nil
}

// pass runs a program on a cluster, with this process's streams.
func pass(r runtime, name string, args []string) error {
	path, err := program(r, name)
	if err != nil {
		return err
	}
	cfg := r.paths.Kubeconfig(r.cluster)
	if _, err := os.Stat(cfg); err != nil {
		return errors.Wrapf(err, "cannot find kubeconfig of cluster %q: run `lab up`", r.cluster)
	}
	cmd := exec.CommandContext(r, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cfg)
	return cmd.Run() // main passes its exit code on.
}

// quiet runs a program on the cluster. Its output is only in the error of a failure.
func quiet(r runtime, stdin, name string, args ...string) error {
	path, err := program(r, name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(r, path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.paths.Kubeconfig(r.cluster))
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "cannot run %s %s: %s", name, args[0], strings.TrimSpace(string(out)))
}

type kubectlCmd struct {
	Args []string `arg:"" optional:"" help:"Arguments of kubectl."`
}

func (c *kubectlCmd) Run(r runtime) error { return pass(r, "kubectl", c.Args) }

type helmCmd struct {
	Args []string `arg:"" optional:"" help:"Arguments of helm."`
}

func (c *helmCmd) Run(r runtime) error { return pass(r, "helm", c.Args) }

type crossplaneCmd struct {
	Args []string `arg:"" optional:"" help:"Arguments of crossplane."`
}

func (c *crossplaneCmd) Run(r runtime) error { return pass(r, "crossplane", c.Args) }

type tailscaleCmd struct {
	As   string   `default:"client" help:"Name of the tailnet client that receives the requests."`
	Args []string `arg:"" optional:"" passthrough:"" help:"Arguments of tailscale, starting with its command."`
}

func (c *tailscaleCmd) Run(r runtime) error {
	return pass(r, "tailscale", append([]string{"--socket", r.paths.ClientSocket(r.tailnet.Name, c.As)}, c.Args...))
}

type execCmd struct {
	Args []string `arg:"" passthrough:"" help:"Program and its arguments."`
}

// Run runs a program of this machine in the network namespace of the cluster's node.
func (c *execCmd) Run(r runtime) error {
	p, err := planned(r)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(r, c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.paths.KubeconfigInside(r.cluster))
	if err := netns.Start(p.Namespace, cmd); err != nil {
		return errors.Wrapf(err, "cannot start %q", c.Args[0])
	}
	return cmd.Wait() // main passes its exit code on.
}

type binCmd struct {
	Name string `arg:"" help:"Name of the program."`
}

func (c *binCmd) Run(r runtime) error {
	path, err := program(r, c.Name)
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

type loadImageCmd struct {
	Name string `arg:"" help:"Name of the image in pods, for instance ghcr.io/tailscale-gateway/agent:v0.1.0."`
	File string `arg:"" type:"existingfile" help:"Archive in the format of 'docker save'."`
}

func (c *loadImageCmd) Run(r runtime) error { return push(r, c.Name, c.File) }

type pushXpkgCmd struct {
	Name string `arg:"" help:"Public name of the package, with its tag."`
	File string `arg:"" type:"existingfile" help:"The .xpkg file."`
}

func (c *pushXpkgCmd) Run(r runtime) error { return push(r, c.Name, c.File) }
