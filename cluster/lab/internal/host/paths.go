// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package host manages the machine that the lab runs on: the folders of the lab,
// the packages that it requires, and the leftovers of a lab.
package host

import (
	"os"
	"path/filepath"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Paths are the folders of a lab.
type Paths struct {
	// Root of the source tree.
	Root string
	// State holds all files of a lab, which `lab down` removes.
	State string
	// Run holds sockets, whose paths must be short.
	Run string
	// Cache holds built tools and outlives labs.
	Cache string
}

// FindPaths finds the source tree from the working directory upwards, and takes
// the others from TSGW_LAB_DIR and TSGW_CACHE or their defaults.
func FindPaths(getenv func(string) string) (Paths, error) {
	p := Paths{State: "/var/lib/tailscale-gateway-lab", Run: "/run/tailscale-gateway-lab"}
	if d := getenv("TSGW_LAB_DIR"); d != "" {
		p.State = d
	}
	base := getenv("TSGW_CACHE")
	if base == "" {
		base = getenv("XDG_CACHE_HOME")
	}
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Paths{}, errors.Wrap(err, "cannot find a folder for the cache: set TSGW_CACHE")
		}
		base = filepath.Join(home, ".cache")
	}
	p.Cache = filepath.Join(base, "tailscale-gateway")
	wd, err := os.Getwd()
	if err != nil {
		return Paths{}, errors.Wrap(err, "cannot get working directory")
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "cluster", "tools", "kubernetes", "go.mod")); err == nil {
			p.Root = d
			return p, nil
		}
		if d == filepath.Dir(d) {
			return Paths{}, errors.New("cannot find the source tree: run the lab from inside of it")
		}
	}
}

// Tools is the folder of the tools' modules.
func (p Paths) Tools() string { return filepath.Join(p.Root, "cluster", "tools") }

// Bin is the folder of the cache that holds built tools.
func (p Paths) Bin() string { return filepath.Join(p.Cache, "bin") }

// Cluster is the folder of one cluster's files.
func (p Paths) Cluster(name string) string { return filepath.Join(p.State, "clusters", name) }

// ClusterRun is the folder of one cluster's sockets.
func (p Paths) ClusterRun(name string) string { return filepath.Join(p.Run, name) }

// Kubeconfig is the administrator's kubeconfig for use on the host.
func (p Paths) Kubeconfig(cluster string) string {
	return filepath.Join(p.Cluster(cluster), "kubeconfig")
}

// KubeconfigInside is the administrator's kubeconfig for use in the cluster's network.
func (p Paths) KubeconfigInside(cluster string) string {
	return filepath.Join(p.Cluster(cluster), "pki", "admin.kubeconfig")
}

// Logs is the folder of all components' logs.
func (p Paths) Logs() string { return filepath.Join(p.State, "logs") }

// Socket is the socket of the daemon.
func (p Paths) Socket() string { return filepath.Join(p.Run, "daemon.sock") }

// PIDFile is the file that identifies the daemon's process.
func (p Paths) PIDFile() string { return filepath.Join(p.State, "daemon.pid") }

// Registry is the folder of the registry's content.
func (p Paths) Registry() string { return filepath.Join(p.State, "registry") }

// ACME is the folder of the ACME server's files.
func (p Paths) ACME() string { return filepath.Join(p.State, "acme") }

// Tailnet is the folder of one tailnet's files.
func (p Paths) Tailnet(name string) string { return filepath.Join(p.State, "tailnets", name) }

// Client is the folder of the files of a tailnet's client.
func (p Paths) Client(tailnet, name string) string {
	return filepath.Join(p.Tailnet(tailnet), "clients", name)
}

// ClientSocket is the socket of the LocalAPI of a tailnet's client. No tailnet's name
// has a dash.
func (p Paths) ClientSocket(tailnet, name string) string {
	return filepath.Join(p.Run, tailnet+"-"+name+".sock")
}
