// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster renders one Kubernetes cluster of the lab: configuration files,
// certificates, command lines, and the objects of its DNS and roles. Prepare writes
// files, and ApplyDNS and ApplyRoles create objects. It starts no processes.
package cluster

import (
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/pki"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// Domain is the clusters' DNS domain.
const Domain = "cluster.local"

// A Cluster is a plan with the paths of its files.
type Cluster struct {
	plan.Cluster

	// Dir holds its files, Run its sockets.
	Dir, Run string
	// Logs holds the logs of all components.
	Logs string
	// Bin are the paths of built binaries by name.
	Bin map[string]string
	// Forward is the address on the host's loopback that leads to its API
	// server, for the administrator's kubeconfig.
	Forward string
}

// New returns the cluster of a plan.
func New(c plan.Cluster, p host.Paths, bin map[string]string, forward string) Cluster {
	return Cluster{Cluster: c, Dir: p.Cluster(c.Name), Run: p.ClusterRun(c.Name), Logs: p.Logs(), Bin: bin, Forward: forward}
}

// Local returns the API server's URL inside of the cluster's namespace.
func (c Cluster) Local() string { return "https://" + net.JoinHostPort(c.Node.String(), "6443") }

func (c Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

func (c Cluster) containerdSocket() string { return filepath.Join(c.Run, "containerd.sock") }

// Prepare writes all files that the components read.
func (c Cluster) Prepare(at time.Time) error {
	for _, d := range []string{c.Run, c.path("pki"), c.path("cni"), c.path("certs.d", "_default"), c.path("pods"), c.path("flexvolume"), c.path("kubelet")} {
		if err := os.MkdirAll(d, 0o755); err != nil { // Keys have stricter modes.
			return errors.Wrap(err, "cannot make the cluster's folders")
		}
	}
	for name, body := range c.Files() {
		if err := os.WriteFile(c.path(name), []byte(body), 0o644); err != nil { // No secrets.
			return errors.Wrapf(err, "cannot write %q", name)
		}
	}
	return c.credentials(at)
}

// credentials writes certificates, keys and kubeconfigs.
func (c Cluster) credentials(at time.Time) error {
	dir := c.path("pki")
	ca, err := pki.NewAuthority("kubernetes", at)
	if err != nil {
		return err
	}
	front, err := pki.NewAuthority("front-proxy-ca", at)
	if err != nil {
		return err
	}
	for name, a := range map[string]*pki.Authority{"ca": ca, "front-proxy-ca": front} {
		key, err := a.KeyPEM()
		if err != nil {
			return err
		}
		if err := pki.WritePair(dir, name, a.PEM(), key); err != nil {
			return err
		}
	}
	private, public, err := pki.NewKeyPair()
	if err != nil {
		return err
	}
	if err := pki.WritePair(dir, "sa", public, private); err != nil {
		return err
	}
	var nodes []net.IP
	server := []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, n := range c.Networks() {
		nodes = append(nodes, n.Node.AsSlice())
		server = append(server, n.Node.AsSlice(), n.API.AsSlice())
	}
	pairs := []struct {
		file string
		ca   *pki.Authority
		req  pki.Request
	}{
		{"apiserver", ca, pki.Request{Name: "kube-apiserver", IPs: server, DNS: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + Domain}}},
		{"apiserver-kubelet-client", ca, pki.Request{Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}},
		{"front-proxy-client", front, pki.Request{Name: "front-proxy-client"}},
		{"kubelet", ca, pki.Request{Name: "system:node:" + c.Name, Groups: []string{"system:nodes"}, IPs: nodes, DNS: []string{c.Name}}},
	}
	for _, p := range pairs {
		cert, key, err := p.ca.Issue(p.req)
		if err != nil {
			return err
		}
		if err := pki.WritePair(dir, p.file, cert, key); err != nil {
			return err
		}
	}
	configs := []struct {
		file, server string
		req          pki.Request
	}{
		{c.path("kubeconfig"), "https://" + c.Forward, pki.Request{Name: "admin", Groups: []string{"system:masters"}}},
		{c.path("pki", "admin.kubeconfig"), c.Local(), pki.Request{Name: "admin", Groups: []string{"system:masters"}}},
		{c.path("pki", "kubelet.kubeconfig"), c.Local(), pki.Request{Name: "system:node:" + c.Name, Groups: []string{"system:nodes"}}},
		{c.path("pki", "controller-manager.kubeconfig"), c.Local(), pki.Request{Name: "system:kube-controller-manager"}},
		{c.path("pki", "scheduler.kubeconfig"), c.Local(), pki.Request{Name: "system:kube-scheduler"}},
		{c.path("pki", "proxy.kubeconfig"), c.Local(), pki.Request{Name: "system:kube-proxy"}},
		{c.path("pki", "coredns.kubeconfig"), c.Local(), pki.Request{Name: corednsUser}},
		{c.path("pki", "kube-router.kubeconfig"), c.Local(), pki.Request{Name: kubeRouterUser}},
	}
	for _, k := range configs {
		cert, key, err := ca.Issue(k.req)
		if err != nil {
			return err
		}
		body, err := pki.Kubeconfig("tsgw-"+c.Name, k.server, ca.PEM(), cert, key)
		if err != nil {
			return err
		}
		if err := os.WriteFile(k.file, body, 0o600); err != nil {
			return errors.Wrapf(err, "cannot write kubeconfig %q", k.file)
		}
	}
	return nil
}
