// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// An IPFamily selects the address families of the networks of a lab's clusters. The zero value
// means IPv4.
type IPFamily string

// IP families of a lab. In a dual-stack lab, IPv4 comes first in each list of addresses, as in
// most clusters.
const (
	IPv4 IPFamily = "ipv4"
	Dual IPFamily = "dual"
	IPv6 IPFamily = "ipv6"
)

// Validate returns an error unless f is an IPFamily or empty.
func (f IPFamily) Validate() error {
	switch f {
	case "", IPv4, Dual, IPv6:
		return nil
	}
	return errors.Errorf("cannot use IP family %q: it must be %s, %s or %s", string(f), IPv4, Dual, IPv6)
}

// WithDefault returns f, or IPv4 for the zero value.
func (f IPFamily) WithDefault() IPFamily {
	if f == "" {
		return IPv4
	}
	return f
}

// networks returns the network of cluster i in its first family, and those in its other families.
func (f IPFamily) networks(i int) (Network, []Network) {
	switch f.WithDefault() {
	case Dual:
		return networkIPv4(i), []Network{networkIPv6(i)}
	case IPv6:
		return networkIPv6(i), nil
	default:
		return networkIPv4(i), nil
	}
}

func networkIPv4(i int) Network {
	return Network{
		Pods:          netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 64+i)),
		Services:      netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 96+i)),
		LoadBalancers: netip.MustParsePrefix(fmt.Sprintf("10.201.%d.0/24", i)),
		Node:          netip.MustParseAddr(fmt.Sprintf("10.%d.0.1", 64+i)),
		API:           netip.MustParseAddr(fmt.Sprintf("10.%d.0.1", 96+i)),
		DNS:           netip.MustParseAddr(fmt.Sprintf("10.%d.0.10", 96+i)),
		WAN:           netip.MustParsePrefix(fmt.Sprintf("10.200.0.%d/%d", 10+i, HubBits)),
	}
}

// networkIPv6 returns a network with the numbers of networkIPv4 in unique local addresses. None is
// in Tailscale's range, fd7a:115c:a1e0::/48.
func networkIPv6(i int) Network {
	return Network{
		Pods:          netip.MustParsePrefix(fmt.Sprintf("fd10:%d::/64", 64+i)),
		Services:      netip.MustParsePrefix(fmt.Sprintf("fd10:%d::/112", 96+i)),
		LoadBalancers: netip.MustParsePrefix(fmt.Sprintf("fd10:201:%d::/112", i)),
		Node:          netip.MustParseAddr(fmt.Sprintf("fd10:%d::1", 64+i)),
		API:           netip.MustParseAddr(fmt.Sprintf("fd10:%d::1", 96+i)),
		DNS:           netip.MustParseAddr(fmt.Sprintf("fd10:%d::10", 96+i)),
		WAN:           netip.MustParsePrefix(fmt.Sprintf("fd10:200::%d/%d", 10+i, hubBitsIPv6)),
	}
}

// Addresses of the hub's network that only labs with IPv6 have.
const (
	hubAddressIPv6    = "fd10:200::1"
	clientAddressIPv6 = "fd10:200::200"
	hubBitsIPv6       = 64
)

// RegistryDomain is the domain of RegistryName, which the DNS of a cluster without IPv4 serves.
const RegistryDomain = "lab.localhost"

// RegistryName is the registry's name in a cluster without IPv4. Clients use HTTP for names that
// end with .localhost and for private IPv4 addresses, but not for private IPv6 addresses
// (github.com/google/go-containerregistry pkg/name, Registry.Scheme).
const RegistryName = "registry." + RegistryDomain

// A Hub has the addresses that clusters reach outside of themselves.
type Hub struct {
	// Addresses are those of the registry and the first tailnet, and Clients those of
	// ClientNamespace, with the prefix of the hub's network. The first of each are of the
	// clusters' first family.
	Addresses []netip.Prefix
	Clients   []netip.Prefix
}

// Hub returns the addresses of the hub's network. The hub and the clients always have IPv4, too,
// because they stand in for the Internet.
func (f IPFamily) Hub() Hub {
	four := [2]netip.Prefix{
		netip.PrefixFrom(netip.MustParseAddr(HubAddress), HubBits),
		netip.PrefixFrom(netip.MustParseAddr(ClientAddress), HubBits),
	}
	six := [2]netip.Prefix{
		netip.PrefixFrom(netip.MustParseAddr(hubAddressIPv6), hubBitsIPv6),
		netip.PrefixFrom(netip.MustParseAddr(clientAddressIPv6), hubBitsIPv6),
	}
	switch f.WithDefault() {
	case Dual:
		return Hub{Addresses: []netip.Prefix{four[0], six[0]}, Clients: []netip.Prefix{four[1], six[1]}}
	case IPv6:
		return Hub{Addresses: []netip.Prefix{six[0], four[0]}, Clients: []netip.Prefix{six[1], four[1]}}
	default:
		return Hub{Addresses: four[:1], Clients: four[1:]}
	}
}

// Address returns the hub's address in the clusters' first family.
func (h Hub) Address() netip.Addr { return h.Addresses[0].Addr() }

func (h Hub) hostPort(port int) string {
	return net.JoinHostPort(h.Address().String(), strconv.Itoa(port))
}

// Registry returns the address of the lab's registry for nodes.
func (h Hub) Registry() string { return h.hostPort(RegistryListenPort) }

// RegistryInCluster returns the lab's registry in the names of packages, for pods.
func (h Hub) RegistryInCluster() string {
	if h.Address().Is6() {
		return net.JoinHostPort(RegistryName, strconv.Itoa(RegistryListenPort))
	}
	return h.Registry()
}

// ACMEServer is the address of the ACME server, which only its front uses. ACMEServerDirectory is
// the URL of its directory.
const (
	ACMEServer          = "127.0.0.1:14001"
	ACMEServerDirectory = "https://" + ACMEServer + "/dir"
)

// ACME returns the address of the front of the ACME server, which stands in for Let's Encrypt.
func (h Hub) ACME() string { return h.hostPort(acmePort) }

// ACMEManagement returns the address at which the ACME server publishes its root.
func (h Hub) ACMEManagement() string { return h.hostPort(acmeManagementPort) }

// ACMEDirectory returns the URL of the ACME directory for tailscaled in the lab.
func (h Hub) ACMEDirectory() string { return "https://" + h.ACME() + "/dir" }

// Whoami returns the address of an HTTP server that requires the PROXY protocol, and responds with
// the client's address and the version of the header.
func (h Hub) Whoami() string {
	return net.JoinHostPort(h.Clients[0].Addr().String(), strconv.Itoa(whoamiPort))
}
