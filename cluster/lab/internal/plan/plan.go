// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan assigns the lab's names and addresses: network namespaces, address
// ranges and ports. It is pure; other packages act on a plan.
package plan

import (
	"net/netip"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// The hub's network joins clusters, clients and the tailnets' simulators. It stands in
// for the Internet: clusters reach it by masquerading, as behind any NAT.
const (
	// TailnetNamespace holds the simulators and the registry.
	TailnetNamespace = "tsgw-tailnet"
	// ClientNamespace holds the tailnet clients of the lab itself.
	ClientNamespace = "tsgw-client"
	// HubAddress is the address of the registry and the first tailnet. Other
	// tailnets have the addresses that follow it.
	HubAddress = "10.200.0.1"
	// ClientAddress is the address of ClientNamespace on the hub's network.
	ClientAddress = "10.200.0.200"
	// ClientHTTPPort and ClientUDPPort are the ports of agnhost's netexec, which
	// every tailnet client of the lab serves.
	ClientHTTPPort = 8080
	ClientUDPPort  = 8081
	// ClientGRPCPort is the port of gRPC's service for health checks, which they serve, too.
	ClientGRPCPort = 5000
	// HostBehindClients is an address of ClientNamespace that is in no tailnet,
	// unless a client is a subnet router for it.
	HostBehindClients = "10.99.0.5"
	// HubBits is the prefix length of the hub's network.
	HubBits = 24
	// HubBridge is the bridge in TailnetNamespace that joins all namespaces.
	HubBridge = "hub0"

	// RegistryListenPort is the port of the lab's registry on the hub.
	RegistryListenPort = 5000
	// PublicDNS is the address of the DNS server with the records that nodes of the
	// first tailnet set through control.
	PublicDNS = HubAddress + ":53"

	// Ports of the servers that Hub has methods for.
	acmePort           = 14000
	acmeManagementPort = 15000
	whoamiPort         = 8082

	// RegistryPort, TailnetPort and APIServerPort are the ports on the host's
	// loopback that are forwarded into the lab, if they are free. Cluster i's
	// API server has APIServerPort+i, tailnet i has TailnetPort+i.
	RegistryPort  = 15000
	TailnetPort   = 15080
	APIServerPort = 16443
)

// MaxClusters and MaxTailnets are the maximum numbers of clusters and tailnets of a lab.
const (
	MaxClusters = 8
	MaxTailnets = 8
)

// names of clusters, and of tailnets.
var names = [...]string{"one", "two", "three", "four", "five", "six", "seven", "eight"}

// A Cluster has the names and addresses of one cluster. No two clusters share any
// of them.
type Cluster struct {
	// Name of the cluster and of its only node.
	Name string `json:"name"`
	// Index counts from 0.
	Index int `json:"index"`
	// Namespace is the name of its network namespace, cgroup and CNI network.
	Namespace string `json:"namespace"`
	// Network is its network in its first family.
	Network
	// More are its networks in other families.
	More []Network `json:"more,omitempty"`
	// Hub has the addresses that it reaches outside.
	Hub Hub `json:"hub"`
}

// A Network has the addresses of a cluster in one family.
type Network struct {
	// Pods and Services are the ranges.
	Pods     netip.Prefix `json:"pods"`
	Services netip.Prefix `json:"services"`
	// LoadBalancers is the range of the addresses that Services of type
	// LoadBalancer get. All but the tailnets' simulators have a route to it.
	LoadBalancers netip.Prefix `json:"loadBalancers"`
	// Node is the address of the node, on the bridge of the pods.
	Node netip.Addr `json:"node"`
	// API and DNS are the Service addresses of the API server and of CoreDNS. In
	// a dual-stack cluster, the API server has only that of the first family.
	API netip.Addr `json:"api"`
	DNS netip.Addr `json:"dns"`
	// WAN is the address on the hub's network, with its prefix.
	WAN netip.Prefix `json:"wan"`
}

// Networks returns the networks of all families, the first family's first.
func (c Cluster) Networks() []Network { return append([]Network{c.Network}, c.More...) }

// Clusters returns the plans of the first n clusters.
func Clusters(n int, f IPFamily) ([]Cluster, error) {
	if n < 1 || n > MaxClusters {
		return nil, errors.Errorf("cannot plan %d clusters: a lab has 1 to %d", n, MaxClusters)
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	out := make([]Cluster, n)
	for i := range out {
		out[i] = Cluster{Name: names[i], Index: i, Namespace: "tsgw-" + names[i], Hub: f.Hub()}
		out[i].Network, out[i].More = f.networks(i)
	}
	return out, nil
}

// IsNamespace reports whether a network namespace of this name is the lab's.
func IsNamespace(name string) bool {
	if name == TailnetNamespace || name == ClientNamespace {
		return true
	}
	for _, n := range names {
		if name == "tsgw-"+n {
			return true
		}
	}
	return false
}

// Namespaces returns every name for which IsNamespace is true.
func Namespaces() []string {
	out := []string{TailnetNamespace, ClientNamespace}
	for _, n := range names {
		out = append(out, "tsgw-"+n)
	}
	return out
}
