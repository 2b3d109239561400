// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

type statusCmd struct {
	JSON bool `help:"Print JSON."`
}

func (c *statusCmd) Run(r runtime) error {
	st, err := r.daemon().Status(r, true)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return errors.Wrap(e.Encode(st), "cannot print status")
	}
	versions := map[string]string{"kube-proxy": "", "containerd": "Debian's", "tailnetsim": "this tree's"}
	for _, t := range tools.Table() {
		for _, o := range t.Outputs {
			for _, n := range append([]string{o.Name}, o.Links...) {
				versions[n] = t.Version
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tVERSION\tHEALTH\tPID\tRESTARTS\tDETAIL")
	unhealthy := 0
	for _, s := range st.Components {
		health := "ok"
		if !s.Healthy {
			health = "UNHEALTHY"
			unhealthy++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", s.Name, versions[s.Program], health, s.PID, s.Restarts, s.Detail)
	}
	fmt.Fprintln(w, "\nFORWARD\tFROM\tTO\t\t\t")
	for _, f := range st.Forwards {
		fmt.Fprintf(w, "%s\t%s\t%s in %s\t\t\t\n", f.Name, f.From, f.To, f.Namespace)
	}
	if err := w.Flush(); err != nil {
		return errors.Wrap(err, "cannot print status")
	}
	switch {
	case st.Failed:
		for _, s := range st.Steps {
			if s.State == daemon.StateFailed {
				fmt.Printf("\nfailed: %s: %s\n", s.Name, s.Detail)
			}
		}
		return errors.New("the lab did not come up")
	case !st.Ready:
		return errors.Errorf("the lab is still coming up: %s", waitingFor(st.Steps))
	case unhealthy > 0:
		return errors.Errorf("%d components are unhealthy", unhealthy)
	}
	return nil
}

type envCmd struct{}

func (c *envCmd) Run(r runtime) error {
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	registry, err := st.Forward(daemon.ForwardRegistry)
	if err != nil {
		return err
	}
	tailnet, err := tailnetAPI(r, st)
	if err != nil {
		return err
	}
	hub := st.IPFamily.Hub()
	selected, err := plan.FindTailnet(r.tailnet.Name, st.IPFamily)
	if err != nil {
		return err
	}
	for _, kv := range [][2]string{
		{"KUBECONFIG", r.paths.Kubeconfig(r.cluster)},
		{"REGISTRY", registry},
		{"REGISTRY_IN_CLUSTER", hub.RegistryInCluster()},
		{"TAILNET_API", tailnet},
		{"TAILNET_API_IN_CLUSTER", selected.URL},
		{"CACHE", r.paths.Cache},
		{"TAILNET_DOMAIN", r.tailnet.Domain},
		{"ACME_ROOT", daemon.ACMERoot(r.paths)},
		{"ACME_DIRECTORY", hub.ACMEDirectory()},
		{"ACME_TRUSTED", daemon.Trusted(r.paths)},
		{"WHOAMI", hub.Whoami()},
		{"TAILNET_CLIENT_ID", r.tailnet.ClientID},
		{"TAILNET_CLIENT_SECRET_FILE", daemon.SecretFile(r.paths, r.tailnet)},
	} {
		fmt.Printf("export %s=%q\n", kv[0], kv[1])
	}
	return nil
}

// tailnetAPI is the URL of a tailnet's API on the host's loopback.
func tailnetAPI(r runtime, st daemon.Status) (string, error) {
	if r.tailnet.Index >= st.Tailnets {
		return "", errors.Errorf("cannot find tailnet %q: the lab was brought up with --tailnets=%d", r.tailnet.Name, st.Tailnets)
	}
	addr, err := st.Forward(daemon.ForwardTailnet + r.tailnet.Name)
	return "http://" + addr, err
}

type logsCmd struct {
	Component string `arg:"" optional:"" help:"Component as listed by 'status', or daemon. Without one, all logs are listed."`
	Lines     int    `short:"n" default:"100" help:"Number of last lines to show. 0 shows all lines."`
}

func (c *logsCmd) Run(r runtime) error {
	if c.Component == "" {
		files, err := filepath.Glob(filepath.Join(r.paths.Logs(), "*.log"))
		if err != nil {
			return errors.Wrap(err, "cannot list logs")
		}
		for _, f := range files {
			fmt.Println(strings.TrimSuffix(filepath.Base(f), ".log"))
		}
		return nil
	}
	b, err := os.ReadFile(daemon.Log(r.paths, c.Component))
	if err != nil {
		return errors.Wrapf(err, "cannot read log of %q", c.Component)
	}
	lines := strings.SplitAfter(string(b), "\n")
	if c.Lines > 0 && len(lines) > c.Lines {
		lines = lines[len(lines)-c.Lines:]
	}
	_, err = os.Stdout.WriteString(strings.Join(lines, ""))
	return errors.Wrap(err, "cannot print log")
}

type kubeconfigCmd struct{}

func (c *kubeconfigCmd) Run(r runtime) error {
	path := r.paths.Kubeconfig(r.cluster)
	if _, err := os.Stat(path); err != nil {
		return errors.Wrapf(err, "cannot find kubeconfig of cluster %q: run `lab up`", r.cluster)
	}
	fmt.Println(path)
	return nil
}
