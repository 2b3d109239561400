// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"

	tsclient "tailscale.com/client/tailscale/v2"
)

// Scopes of the DNS settings.
const (
	scopeDNS      = "dns:read"
	scopeDNSWrite = "dns"
)

// DNS settings of a tailnet.
type DNS struct {
	// Nameservers for all domains without their own, in order.
	Nameservers []string

	// SearchPaths in order.
	SearchPaths []string

	// SplitDNS are the nameservers of domains.
	SplitDNS map[string][]string

	MagicDNS bool
}

type dnsConfiguration = tsclient.DNSConfiguration

// MagicDNS reports whether MagicDNS is on.
func (c *Client) MagicDNS(ctx context.Context, staleness Staleness) (bool, error) {
	return c.values.magicDNS.get(ctx, c.maxAge(staleness))
}

func (c *Client) loadMagicDNS(ctx context.Context) (bool, error) {
	p, err := c.api.DNS().Preferences(ctx)
	if err != nil {
		return false, classify(err, scopeDNS, true)
	}
	return p.MagicDNS, nil
}

// DNS returns the tailnet's DNS settings from a shared answer.
func (c *Client) DNS(ctx context.Context, staleness Staleness) (DNS, error) {
	return c.values.dns.get(ctx, c.maxAge(staleness))
}

func (c *Client) loadDNS(ctx context.Context) (DNS, error) {
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

// OverrideLocalDNS reports whether the nameservers replace the devices' own
// nameservers. Only an alpha part of the API has this setting.
func (c *Client) OverrideLocalDNS(ctx context.Context, staleness Staleness) (bool, error) {
	conf, err := c.values.configuration.get(ctx, c.maxAge(staleness))
	return conf.Preferences.OverrideLocalDNS, err
}

func (c *Client) loadConfiguration(ctx context.Context) (dnsConfiguration, error) {
	conf, err := c.api.DNS().Configuration(ctx)
	if err != nil {
		return dnsConfiguration{}, classify(err, scopeDNS, true)
	}
	return *conf, nil
}

// SetNameservers replaces the global nameservers. The API turns MagicDNS off
// when the last one goes.
func (c *Client) SetNameservers(ctx context.Context, addresses []string) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	return classify(c.api.DNS().SetNameservers(ctx, append([]string{}, addresses...)), scopeDNSWrite, true)
}

// SetSearchPaths replaces the search paths.
func (c *Client) SetSearchPaths(ctx context.Context, paths []string) error {
	of := map[string][]string{}
	for _, p := range paths {
		of[p] = nil
	}
	if err := c.checkDomains(of); err != nil {
		return err
	}
	defer c.expireDNS()
	return classify(c.api.DNS().SetSearchPaths(ctx, append([]string{}, paths...)), scopeDNSWrite, true)
}

// PatchSplitDNS sets the nameservers of domains, or removes a domain that has
// none. Other domains are left alone.
func (c *Client) PatchSplitDNS(ctx context.Context, domains map[string][]string) error {
	if err := c.checkDomains(domains); err != nil {
		return err
	}
	defer c.expireDNS()
	// null removes a domain; what an empty list does is not documented (OpenAPI,
	// PATCH /tailnet/{tailnet}/dns/split-dns).
	in := make(map[string][]string, len(domains))
	for d, ns := range domains {
		in[d] = nil
		if len(ns) > 0 {
			in[d] = ns
		}
	}
	_, err := c.api.DNS().UpdateSplitDNS(ctx, in)
	return classify(err, scopeDNSWrite, true)
}

// SetMagicDNS turns MagicDNS on or off.
func (c *Client) SetMagicDNS(ctx context.Context, on bool) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	return classify(c.api.DNS().SetPreferences(ctx, tsclient.DNSPreferences{MagicDNS: on}), scopeDNSWrite, true)
}

// SetOverrideLocalDNS changes that one preference. The API can only replace the
// whole configuration, so what others write at the same moment may be lost.
func (c *Client) SetOverrideLocalDNS(ctx context.Context, on bool) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	conf, err := c.loadConfiguration(ctx)
	if err != nil || conf.Preferences.OverrideLocalDNS == on {
		return err
	}
	conf.Preferences.OverrideLocalDNS = on
	return classify(c.api.DNS().SetConfiguration(ctx, conf), scopeDNSWrite, true)
}

func (c *Client) expireDNS() {
	c.values.dns.expire()
	c.values.magicDNS.expire()
	c.values.configuration.expire()
}
