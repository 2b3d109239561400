// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/component"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

const (
	// Bridge is the pods' bridge in a cluster's namespace.
	Bridge = "cni0"
	// WAN is the link that joins a cluster to the hub.
	WAN = "wan0"
)

func services(n plan.Network) string { return n.Services.String() }

func pods(n plan.Network) string { return n.Pods.String() }

func node(n plan.Network) string { return n.Node.String() }

// each returns a part of the network of each family, separated by commas.
func (c Cluster) each(part func(plan.Network) string) string {
	var out []string
	for _, n := range c.Networks() {
		out = append(out, part(n))
	}
	return strings.Join(out, ",")
}

// has reports whether the cluster has a network of a family.
func (c Cluster) has(family func(netip.Addr) bool) bool {
	return slices.ContainsFunc(c.Networks(), func(n plan.Network) bool { return family(n.Node) })
}

// Components returns the cluster's processes in the order to start them.
func (c Cluster) Components() []component.Component {
	all := []component.Component{c.etcd(), c.apiserver(), c.controllerManager(), c.scheduler(), c.containerdComponent(), c.kubeletComponent(), c.kubeProxy(), c.coredns(), c.kubeRouter()}
	for i := range all {
		all[i].Name += "-" + c.Name
		all[i].Cluster = c.Name
		all[i].Namespace = c.Namespace
	}
	return all
}

// etcd runs without fsync, because a lab's data need not survive a power failure.
func (c Cluster) etcd() component.Component {
	return component.Component{
		Name: "etcd", Program: "etcd",
		Command: []string{
			c.Bin["etcd"], "--data-dir", c.path("etcd"), "--unsafe-no-fsync",
			"--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
			"--listen-peer-urls", "http://127.0.0.1:2380", "--log-level", "warn",
		},
		Ready: component.Check{URL: "http://127.0.0.1:2379/health"},
	}
}

func (c Cluster) apiserver() component.Component {
	return component.Component{
		Name: "kube-apiserver", Program: "kube-apiserver",
		Command: []string{
			c.Bin["kube-apiserver"],
			"--advertise-address=" + c.Node.String(),
			"--allow-privileged=true",
			"--authorization-mode=Node,RBAC",
			"--client-ca-file=" + c.path("pki", "ca.crt"),
			"--enable-admission-plugins=NodeRestriction",
			"--etcd-servers=http://127.0.0.1:2379",
			"--kubelet-certificate-authority=" + c.path("pki", "ca.crt"),
			"--kubelet-client-certificate=" + c.path("pki", "apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + c.path("pki", "apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--proxy-client-cert-file=" + c.path("pki", "front-proxy-client.crt"),
			"--proxy-client-key-file=" + c.path("pki", "front-proxy-client.key"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-client-ca-file=" + c.path("pki", "front-proxy-ca.crt"),
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--secure-port=6443",
			"--service-account-issuer=https://kubernetes.default.svc." + Domain,
			"--service-account-key-file=" + c.path("pki", "sa.crt"),
			"--service-account-signing-key-file=" + c.path("pki", "sa.key"),
			"--service-cluster-ip-range=" + c.each(services),
			"--tls-cert-file=" + c.path("pki", "apiserver.crt"),
			"--tls-private-key-file=" + c.path("pki", "apiserver.key"),
		},
		Ready: component.Check{URL: c.Local() + "/readyz"},
	}
}

func (c Cluster) controllerManager() component.Component {
	return component.Component{
		Name: "kube-controller-manager", Program: "kube-controller-manager",
		Command: []string{
			c.Bin["kube-controller-manager"],
			"--bind-address=127.0.0.1",
			"--cluster-name=" + c.Name,
			"--cluster-signing-cert-file=" + c.path("pki", "ca.crt"),
			"--cluster-signing-key-file=" + c.path("pki", "ca.key"),
			"--kubeconfig=" + c.path("pki", "controller-manager.kubeconfig"),
			"--leader-elect=false",
			"--root-ca-file=" + c.path("pki", "ca.crt"),
			"--service-account-private-key-file=" + c.path("pki", "sa.key"),
			"--use-service-account-credentials=true",
		},
		Ready: component.Check{URL: "https://127.0.0.1:10257/healthz"},
	}
}

func (c Cluster) scheduler() component.Component {
	return component.Component{
		Name: "kube-scheduler", Program: "kube-scheduler",
		Command: []string{
			c.Bin["kube-scheduler"],
			"--bind-address=127.0.0.1",
			"--kubeconfig=" + c.path("pki", "scheduler.kubeconfig"),
			"--leader-elect=false",
		},
		Ready: component.Check{URL: "https://127.0.0.1:10259/healthz"},
	}
}

func (c Cluster) containerdComponent() component.Component {
	return component.Component{
		Name: "containerd", Program: "containerd",
		Command: []string{"containerd", "--config", c.path("containerd.toml"), "--log-level", "info"},
		Ready:   component.Check{Socket: c.containerdSocket()},
	}
}

func (c Cluster) kubeletComponent() component.Component {
	return component.Component{
		Name: "kubelet", Program: "kubelet",
		Command: []string{
			c.Bin["kubelet"],
			"--config=" + c.path("kubelet.yaml"),
			"--hostname-override=" + c.Name,
			"--kubeconfig=" + c.path("pki", "kubelet.kubeconfig"),
			"--node-ip=" + c.each(node),
			"--root-dir=" + c.path("kubelet"),
		},
		Ready: component.Check{URL: "http://127.0.0.1:10248/healthz"},
	}
}

func (c Cluster) kubeProxy() component.Component {
	return component.Component{
		Name: "kube-proxy", Program: "kube-proxy",
		Command: []string{c.Bin["kube-proxy"], "--config=" + c.path("proxy.yaml")},
		Ready:   component.Check{URL: "http://127.0.0.1:10256/livez"},
	}
}

// kubeRouter enforces NetworkPolicies. Its other functions are disabled. It needs
// the Node object, so it starts last.
func (c Cluster) kubeRouter() component.Component {
	return component.Component{
		Name: "kube-router", Program: "kube-router",
		Command: []string{
			c.Bin["kube-router"],
			"--enable-cni=false",
			"--enable-ipv4=" + strconv.FormatBool(c.has(netip.Addr.Is4)),
			"--enable-ipv6=" + strconv.FormatBool(c.has(netip.Addr.Is6)),
			"--health-port=20244",
			"--hostname-override=" + c.Name,
			"--kubeconfig=" + c.path("pki", "kube-router.kubeconfig"),
			"--run-firewall=true",
			"--run-router=false",
			"--run-service-proxy=false",
			"--service-cluster-ip-range=" + c.each(services),
		},
		Ready: component.Check{URL: "http://127.0.0.1:20244/healthz"},
	}
}

// coredns runs as a process, so DNS does not depend on pods.
func (c Cluster) coredns() component.Component {
	return component.Component{
		Name: "coredns", Program: "coredns",
		Command: []string{c.Bin["coredns"], "-conf", c.path("Corefile")},
		Ready:   component.Check{URL: "http://127.0.0.1:8181/ready"},
	}
}
