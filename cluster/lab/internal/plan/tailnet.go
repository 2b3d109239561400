// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Tailnet has the names and addresses of one simulated tailnet. No two tailnets
// share any of them, but their machines may have the same addresses, as those of
// unrelated tailnets do.
type Tailnet struct {
	// Name of the tailnet in the lab.
	Name string `json:"name"`
	// Index counts from 0.
	Index int `json:"index"`
	// Address of API and control server on the hub's network.
	Address netip.Addr `json:"address"`
	// URL of API and control server.
	URL string `json:"url"`
	// Domain is the MagicDNS suffix.
	Domain string `json:"domain"`
	// Organization is the tailnet's name to Tailscale.
	Organization string `json:"organization"`
	// ClientID of the OAuth client.
	ClientID string `json:"clientID"`
}

// Tailnets returns the plans of the first n tailnets, with addresses for clusters of a family.
func Tailnets(n int, f IPFamily) ([]Tailnet, error) {
	if n < 1 || n > MaxTailnets {
		return nil, errors.Errorf("cannot plan %d tailnets: a lab has 1 to %d", n, MaxTailnets)
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	out := make([]Tailnet, n)
	for i := range out {
		a := f.Hub().Address()
		for range i {
			a = a.Next()
		}
		out[i] = Tailnet{
			Name:    names[i],
			Index:   i,
			Address: a,
			URL:     urlOf(a),
			// tail1234, tail2345, ...
			Domain:       fmt.Sprintf("tail%d.ts.net", 1234+1111*i),
			Organization: names[i] + ".example.com",
			ClientID:     "lab" + names[i],
		}
	}
	return out, nil
}

// urlOf returns the URL of an address, with the brackets of IPv6.
func urlOf(a netip.Addr) string {
	if a.Is6() {
		return "http://[" + a.String() + "]"
	}
	return "http://" + a.String()
}

// HostPort returns the address at which API and control server listen.
func (t Tailnet) HostPort() string { return net.JoinHostPort(t.Address.String(), "80") }

// FindTailnet returns the plan of a tailnet by its name, with an address for clusters of a family.
func FindTailnet(name string, f IPFamily) (Tailnet, error) {
	all, err := Tailnets(MaxTailnets, f)
	if err != nil {
		return Tailnet{}, err
	}
	for _, t := range all {
		if t.Name == name {
			return t, nil
		}
	}
	return Tailnet{}, errors.Errorf("cannot find tailnet %q", name)
}
