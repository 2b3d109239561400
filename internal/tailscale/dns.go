// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"

	tsclient "tailscale.com/client/tailscale/v2"
)

// OAuth scopes of the DNS settings.
const (
	scopeDNS      = "dns:read"
	scopeDNSWrite = "dns"
)

// A DNS holds the DNS settings of a tailnet.
type DNS struct {
	// Nameservers are the global nameservers, in order. They serve all domains without an entry in
	// SplitDNS.
	Nameservers []string

	// SearchPaths are the search paths, in order.
	SearchPaths []string

	// SplitDNS maps domains to their nameservers.
	SplitDNS map[string][]string

	MagicDNS bool
}

type dnsConfiguration = tsclient.DNSConfiguration

// A DNSResource calls the API for the tailnet's DNS settings.
type DNSResource struct{ *core }

// MagicDNS reports whether MagicDNS is on.
func (c DNSResource) MagicDNS(ctx context.Context, staleness Staleness) (bool, error) {
	return c.values.magicDNS.get(ctx, c.maxAge(staleness))
}

func (c DNSResource) loadMagicDNS(ctx context.Context) (bool, error) {
	p, err := c.api.DNS().Preferences(ctx)
	if err != nil {
		return false, classify(err, scopeDNS, true)
	}
	return p.MagicDNS, nil
}

// DNS returns the tailnet's DNS settings from a shared response.
func (c DNSResource) DNS(ctx context.Context, staleness Staleness) (DNS, error) {
	return c.values.dns.get(ctx, c.maxAge(staleness))
}

func (c DNSResource) loadDNS(ctx context.Context) (DNS, error) {
	api := c.api.DNS()
	ns, err := api.Nameservers(ctx)
	if err != nil {
		return DNS{}, classify(err, scopeDNS, true)
	}
	sp, err := api.SearchPaths(ctx)
	if err != nil {
		return DNS{}, classify(err, scopeDNS, true)
	}
	split, err := api.SplitDNS(ctx)
	if err != nil {
		return DNS{}, classify(err, scopeDNS, true)
	}
	magic, err := c.loadMagicDNS(ctx)
	return DNS{Nameservers: ns, SearchPaths: sp, SplitDNS: split, MagicDNS: magic}, err
}

// OverrideLocalDNS reports whether the tailnet's nameservers replace the devices' own nameservers.
// Only an alpha endpoint of the API has this setting.
func (c DNSResource) OverrideLocalDNS(ctx context.Context, staleness Staleness) (bool, error) {
	conf, err := c.values.configuration.get(ctx, c.maxAge(staleness))
	return conf.Preferences.OverrideLocalDNS, err
}

func (c DNSResource) loadConfiguration(ctx context.Context) (dnsConfiguration, error) {
	conf, err := c.api.DNS().Configuration(ctx)
	if err != nil {
		return dnsConfiguration{}, classify(err, scopeDNS, true)
	}
	return *conf, nil
}

func (c DNSResource) expireDNS() {
	c.values.dns.expire()
	c.values.magicDNS.expire()
	c.values.configuration.expire()
}
