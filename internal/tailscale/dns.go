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

// DNS returns the tailnet's DNS settings from a shared response.
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

// OverrideLocalDNS reports whether the tailnet's nameservers replace the devices' own nameservers.
// Only an alpha endpoint of the API has this setting.
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

// SetNameservers replaces the global nameservers. The API turns MagicDNS off when the list becomes
// empty.
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

// PatchSplitDNS sets the nameservers of domains. It removes domains with an empty list, and leaves
// other domains unchanged.
func (c *Client) PatchSplitDNS(ctx context.Context, domains map[string][]string) error {
	if err := c.checkDomains(domains); err != nil {
		return err
	}
	defer c.expireDNS()
	// null removes a domain. The API does not document the effect of an empty list (OpenAPI, PATCH
	// /tailnet/{tailnet}/dns/split-dns).
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

// SetOverrideLocalDNS changes only that setting. The API can only replace the whole configuration,
// so a concurrent write of another client may be lost.
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
