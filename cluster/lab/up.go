// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/wire"
)

type upCmd struct {
	Clusters  int           `help:"Number of clusters. One by default; a running lab keeps its clusters."`
	Tailnets  int           `help:"Number of independent tailnets. One by default. Only machines of the first tailnet get certificates."`
	Install   bool          `help:"Install missing packages with apt-get."`
	Policy    string        `type:"existingfile" help:"HuJSON file with the initial policy of each tailnet. By default, all devices reach each other, and no hosts of services are approved."`
	IPFamily  plan.IPFamily `name:"ip-family" default:"" placeholder:"ipv4|dual|ipv6" help:"Address families of the clusters' networks: ipv4, dual (IPv4 before IPv6) or ipv6 alone. ipv4 by default; a running lab keeps its families."`
	SlowPaths bool          `help:"Slow paths between clusters, clients and the tailnets: all traffic of a tailnet is relayed, with round trips of 150 ms to the relay, 1% loss and an MTU of 1280."`
	Timeout   time.Duration `default:"10m" help:"How long to wait for the lab, once everything is built."`
}

// Validate returns an error for an unknown IP family.
func (c *upCmd) Validate() error { return c.IPFamily.Validate() }

func (c *upCmd) Run(r runtime) error {
	if err := preflight(r, c.Install, os.Stdout); err != nil {
		return err
	}
	if c.IPFamily.WithDefault() != plan.IPv4 {
		if err := host.CheckIPv6(); err != nil {
			return err
		}
	}
	started, err := c.ensure(r)
	if err != nil || !started {
		return err
	}
	return c.wait(r)
}

// ensure makes sure that a lab is up or coming up. It returns false if there
// is nothing to wait for.
func (c *upCmd) ensure(r runtime) (bool, error) {
	unlock, err := lock(r)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, ok := r.paths.Daemon(); ok {
		st, err := r.daemon().Status(r, false)
		if err == nil && st.Ready {
			return false, c.already(st)
		}
		if err == nil && !st.Failed {
			fmt.Println("a lab is coming up, waiting for it")
			return true, nil
		}
		fmt.Println("removing a lab that failed to come up")
	}
	b := builder(r.paths)
	if err := b.BuildAll(r); err != nil {
		return false, err
	}
	if err := stopAndSweep(r, true); err != nil {
		return false, err
	}
	return true, c.start(r, b)
}

func lock(r runtime) (func(), error) {
	return r.paths.Lock(r, func() { fmt.Println("waiting for another command that changes the lab") })
}

func (c *upCmd) already(st daemon.Status) error {
	if c.Clusters != 0 && st.Clusters != c.Clusters {
		return errors.Errorf("a lab with %d clusters is up: run `lab down` first", st.Clusters)
	}
	if c.Tailnets != 0 && st.Tailnets != c.Tailnets {
		return errors.Errorf("a lab with %d tailnets is up: run `lab down` first", st.Tailnets)
	}
	if c.IPFamily != "" && st.IPFamily.WithDefault() != c.IPFamily {
		return errors.Errorf("a lab with --ip-family=%s is up: run `lab down` first", st.IPFamily.WithDefault())
	}
	if c.SlowPaths && !st.SlowPaths {
		return errors.New("a lab with fast paths is up: run `lab down` first")
	}
	fmt.Println("the lab is up already")
	hints()
	return nil
}

// preflight returns an error that lists all unmet requirements of the machine.
func preflight(r runtime, install bool, w io.Writer) error {
	missing := host.Check(r, r.paths)
	if install && len(missing) > 0 {
		if err := host.Install(r, missing, w); err != nil {
			return err
		}
		missing = host.Check(r, r.paths)
	}
	if len(missing) == 0 {
		return nil
	}
	lines := make([]string, len(missing))
	for i, m := range missing {
		lines[i] = "  " + m.Line()
	}
	return errors.Errorf("cannot start: this machine is not ready\n%s", strings.Join(lines, "\n"))
}

func builder(p host.Paths) *tools.Builder {
	st, err := os.Stdout.Stat()
	return &tools.Builder{
		Modules: p.Tools(), Cache: p.Bin(), GoVersion: goruntime.Version(), Progress: os.Stdout,
		Terminal: err == nil && st.Mode()&os.ModeCharDevice != 0,
	}
}

// start starts the daemon, detached from this process.
func (c *upCmd) start(r runtime, b *tools.Builder) error {
	p := r.paths
	if err := host.Record(p); err != nil {
		return err
	}
	bin, err := b.Binaries()
	if err != nil {
		return err
	}
	for _, d := range []string{p.Logs(), filepath.Join(p.State, "bin")} {
		if err := os.MkdirAll(d, 0o755); err != nil { // No secrets in there.
			return errors.Wrap(err, "cannot make the lab's folders")
		}
	}
	bin["tailnetsim"] = filepath.Join(p.State, "bin", "tailnetsim")
	const pkg = "./internal/tailnetsim/cmd/tailnetsim"
	fmt.Printf("building %s\n", pkg)
	sim := exec.CommandContext(r, "go", "build", "-o", bin["tailnetsim"], pkg)
	sim.Dir = p.Root
	if output, err := sim.CombinedOutput(); err != nil {
		return errors.Errorf("cannot build %s: %v: %s", pkg, err, strings.TrimSpace(string(output)))
	}
	// `go run` removes this program when it ends, so the daemon runs a copy.
	lab := filepath.Join(p.State, "bin", "lab")
	if err := copySelf(lab); err != nil {
		return err
	}
	t, err := tools.Find("crossplane")
	if err != nil {
		return err
	}
	crossplane, err := b.ModuleDir(r, t)
	if err != nil {
		return err
	}
	policy := c.Policy
	if policy != "" {
		if policy, err = filepath.Abs(policy); err != nil {
			return errors.Wrap(err, "cannot find policy")
		}
	}
	var path *wire.Path
	if c.SlowPaths {
		path = ptr.To(wire.Slow(plan.RegistryListenPort))
	}
	cfg, err := json.MarshalIndent(daemon.Config{
		Paths: p, Clusters: max(c.Clusters, 1), Tailnets: max(c.Tailnets, 1), IPFamily: c.IPFamily.WithDefault(), Bin: bin, Crossplane: crossplane, Policy: policy, Path: path,
	}, "", "  ")
	if err != nil {
		return errors.Wrap(err, "cannot encode configuration")
	}
	if err := os.WriteFile(daemon.ConfigFile(p), cfg, 0o600); err != nil {
		return errors.Wrap(err, "cannot write configuration")
	}
	log, err := os.Create(daemon.Log(p, "daemon"))
	if err != nil {
		return errors.Wrap(err, "cannot make the daemon's log")
	}
	defer log.Close() // The daemon has its own copy.
	cmd := exec.CommandContext(context.WithoutCancel(r), lab, "daemon", daemon.ConfigFile(p))
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	// Debian installs iptables in folders that not every shell of root has in PATH.
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Wrap(err, "cannot start the lab's daemon")
	}
	return errors.Wrap(cmd.Process.Release(), "cannot release the lab's daemon")
}

// copySelf copies this program.
func copySelf(dst string) error {
	src, err := os.Open("/proc/self/exe")
	if err != nil {
		return errors.Wrap(err, "cannot open this program")
	}
	defer src.Close()                                                       // Only read.
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) // A program.
	if err != nil {
		return errors.Wrap(err, "cannot copy this program")
	}
	if _, err := io.Copy(out, src); err != nil {
		_ = out.Close() // The other error has the cause.
		return errors.Wrap(err, "cannot copy this program")
	}
	return errors.Wrap(out.Close(), "cannot copy this program")
}

// wait shows the daemon's steps until the lab is up.
func (c *upCmd) wait(r runtime) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r, c.Timeout)
	defer cancel()
	show := newStepPrinter(os.Stdout, builder(r.paths).Terminal)
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		st, err := r.daemon().Status(ctx, false)
		if err == nil {
			show.print(st.Steps)
		}
		switch {
		case err == nil && st.Ready:
			fmt.Printf("the lab is up after %s\n", time.Since(began).Round(time.Second))
			hints()
			return nil
		case err == nil && st.Failed:
			return errors.New("the lab did not come up, see above. It is not removed: see `lab logs daemon` and `lab status`, then run `lab up` or `lab down`")
		case err != nil && time.Since(began) > 20*time.Second:
			return errors.Wrap(err, "the lab's daemon does not answer, see `lab logs daemon`")
		}
		select {
		case <-ctx.Done():
			if r.Err() != nil {
				return errors.New("interrupted. The lab is still coming up: `lab up` waits for it, `lab down` removes it")
			}
			return errors.Errorf("the lab is not up after %s; waiting for: %s", c.Timeout, waitingFor(st.Steps))
		case <-t.C:
		}
	}
}

func hints() {
	fmt.Println("look around: lab status | lab kubectl get pods -A | lab tailscale status   (lab = go run ./cluster/lab)")
}

type downCmd struct{}

func (c *downCmd) Run(r runtime) error {
	if os.Geteuid() != 0 {
		return errors.New("cannot remove the lab: not root")
	}
	unlock, err := lock(r)
	if err != nil {
		return err
	}
	defer unlock()
	began := time.Now()
	if err := stopAndSweep(r, false); err != nil {
		return err
	}
	fmt.Printf("the lab was removed in %s\n", time.Since(began).Round(100*time.Millisecond))
	return nil
}

// stopAndSweep stops a lab in any state, and removes it.
func stopAndSweep(r runtime, keepRegistry bool) error {
	d, ok := r.paths.Daemon()
	if !ok && r.daemon().Foreign(r) {
		return errors.New("another lab is up on this machine: run `lab down` with the TSGW_LAB_DIR of that lab")
	}
	if ok {
		if err := d.Stop(r, 90*time.Second); err != nil {
			return err
		}
	}
	return host.Sweep(r, r.paths, keepRegistry)
}

type buildCmd struct {
	Tools []string `arg:"" optional:"" help:"Tools to build, by their folders in cluster/tools: envoy-gateway, envoy, ... By default, the tools of every lab."`
}

func (c *buildCmd) Run(r runtime) error {
	unlock, err := lock(r)
	if err != nil {
		return err
	}
	defer unlock()
	if len(c.Tools) == 0 {
		return builder(r.paths).BuildAll(r)
	}
	return ensure(r, builder(r.paths), c.Tools...)
}

// ensure builds the tools of the given names.
func ensure(r runtime, b *tools.Builder, names ...string) error {
	needed := make([]tools.Tool, len(names))
	for i, n := range names {
		var err error
		if needed[i], err = tools.Find(n); err != nil {
			return err
		}
	}
	return b.Ensure(r, needed...)
}

type daemonServerCmd struct {
	File string `arg:"" help:"Configuration file that 'up' writes."`
}

func (c *daemonServerCmd) Run(_ runtime) error { return daemon.Run(context.Background(), c.File) }
