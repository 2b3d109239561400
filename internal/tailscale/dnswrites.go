// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// The calls for nameservers take addresses alone, but a nameserver has further settings, such as
// useWithExitNode, which people set in the admin console (tailscale/tailscale#18981). Only the
// configuration, an alpha endpoint, has them, and can only be replaced as a whole, without a
// precondition. So a write that would drop such settings replaces the configuration, and all other
// writes use the narrow calls, which cannot lose the update of another client.

// A dnsDocument is the DNS configuration of a tailnet with all its fields.
type dnsDocument struct {
	fields Fields

	// rich is whether the document has settings that the narrow calls drop.
	rich bool
}

// dnsDocument returns the DNS configuration, or nil if the API answers that there is none. That may
// mean that it has no such endpoint, and it does not mean that nameservers have no settings.
func (c DNSResource) dnsDocument(ctx context.Context) (*dnsDocument, error) {
	d := &dnsDocument{}
	err := c.raw(ctx, scopeDNS, http.MethodGet, nil, &d.fields, "tailnet", c.tailnet, "dns", "configuration")
	if IsNotFound(err) {
		return nil, nil // The callers know what is safe without it.
	}
	if err != nil {
		return nil, err
	}
	if d.fields == nil {
		d.fields = Fields{}
	}
	return d, nil
}

// errNoDNSDocument returns the error of a write that could drop what others have chosen.
func errNoDNSDocument() error {
	return &Error{
		Class: ClassTailnetNotFound, Status: http.StatusNotFound, Scope: scopeDNS,
		Message: "it has no DNS configuration, which has the settings of nameservers, so that a write could drop them",
	}
}

// keepsAny reports whether a nameserver stays.
func keepsAny(current, next []string) bool {
	return slices.ContainsFunc(current, func(a string) bool {
		return slices.ContainsFunc(next, func(b string) bool { return canonicalAddress(a) == canonicalAddress(b) })
	})
}

// writeRich writes the whole configuration, as set changes it, if nameservers have settings that a
// narrow call would drop, and reports whether it did. Without a configuration to read, keeps reports
// whether the call would keep a nameserver, whose settings are then unknown.
func (c DNSResource) writeRich(ctx context.Context, set func(*dnsDocument) error, keeps func() (bool, error)) (written bool, err error) {
	d, err := c.dnsDocument(ctx)
	if err != nil {
		return false, err
	}
	if d == nil {
		retained, err := keeps()
		switch {
		case err != nil:
			return false, classify(err, scopeDNS, true)
		case retained:
			return false, errNoDNSDocument()
		}
		return false, nil
	}
	if err := set(d); err != nil || !d.rich {
		return false, err
	}
	return true, c.putDNSDocument(ctx, d)
}

func (c DNSResource) putDNSDocument(ctx context.Context, d *dnsDocument) error {
	names := namesOf[dnsConfiguration]()
	_, err := c.writeKeeping(ctx, c.dnsWrite("configuration"), d.fields.only(names...), d.fields.without(names...))
	var e *Error
	if d.rich && errors.As(err, &e) && e.Class == ClassInvalid {
		// Tailscale refuses MagicDNS without a global nameserver there, although a new tailnet has
		// MagicDNS and none. The narrow call would drop what an admin has chosen.
		e.Message += "; some of these nameservers have settings, such as use with exit node, that only a write of the whole DNS configuration keeps: add a global nameserver, or remove these settings"
	}
	return err
}

// dnsWrite returns a write of a part of the DNS settings.
func (c DNSResource) dnsWrite(part string) request {
	return request{scope: scopeDNSWrite, method: http.MethodPost, path: []string{"tailnet", c.tailnet, "dns", part}, tailnet: true}
}

// resolvers returns the nameservers with the addresses, in that order, and keeps the settings that
// current ones with the same addresses have.
func (d *dnsDocument) resolvers(current []Fields, addresses []string) ([]Fields, error) {
	byAddress := map[string]Fields{}
	for _, r := range current {
		var a string
		if err := r.decode("address", &a); err != nil {
			return nil, err
		}
		byAddress[canonicalAddress(a)] = r
	}
	out := make([]Fields, 0, len(addresses))
	for _, a := range addresses {
		r, ok := byAddress[canonicalAddress(a)]
		if !ok {
			r = Fields{}
			if err := r.set("address", a); err != nil {
				return nil, err
			}
		}
		d.rich = d.rich || hasSettings(r)
		out = append(out, r)
	}
	return out, nil
}

// hasSettings reports whether a nameserver has more than its address.
func hasSettings(r Fields) bool {
	for _, v := range r.without("address") {
		if !slices.Contains([]string{"false", "null", `""`, "0"}, string(v)) {
			return true
		}
	}
	return false
}

func (d *dnsDocument) setNameservers(addresses []string) error {
	var current []Fields
	if err := d.fields.decode("nameservers", &current); err != nil {
		return err
	}
	rs, err := d.resolvers(current, addresses)
	if err != nil {
		return err
	}
	return d.fields.set("nameservers", rs)
}

func (d *dnsDocument) setSplitDNS(domains map[string][]string) error {
	all := map[string][]Fields{}
	if err := d.fields.decode("splitDNS", &all); err != nil {
		return err
	}
	for domain, addresses := range domains {
		if len(addresses) == 0 {
			delete(all, domain)
			continue
		}
		rs, err := d.resolvers(all[domain], addresses)
		if err != nil {
			return err
		}
		all[domain] = rs
	}
	return d.fields.set("splitDNS", all)
}

// canonicalAddress returns an address in the form of netip, because an IPv6 address has several
// spellings.
func canonicalAddress(a string) string {
	if ip, err := netip.ParseAddr(a); err == nil {
		return ip.String()
	}
	return a
}

// SetNameservers replaces the global nameservers. Those that stay keep their settings. The API
// turns MagicDNS off when the list becomes empty.
func (c DNSResource) SetNameservers(ctx context.Context, addresses []string) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	written, err := c.writeRich(ctx, func(d *dnsDocument) error { return d.setNameservers(addresses) }, func() (bool, error) {
		current, err := c.api.DNS().Nameservers(ctx)
		return keepsAny(current, addresses), err
	})
	if err != nil || written {
		return err
	}
	// The API returns magicDNS there, too, as a consequence.
	return c.replace(ctx, c.dnsWrite("nameservers"), map[string][]string{"dns": append([]string{}, addresses...)}, "magicDNS")
}

// SetSearchPaths replaces the search paths.
func (c DNSResource) SetSearchPaths(ctx context.Context, paths []string) error {
	domains := map[string][]string{}
	for _, p := range paths {
		domains[p] = nil
	}
	if err := c.checkDomains(domains); err != nil {
		return err
	}
	defer c.expireDNS()
	return c.replace(ctx, c.dnsWrite("searchpaths"), map[string][]string{"searchPaths": append([]string{}, paths...)})
}

// PatchSplitDNS sets the nameservers of domains. Nameservers that a domain keeps have the same
// settings afterwards. It removes domains with an empty list, and leaves other domains unchanged. It
// returns an error if the tailnet has other nameservers for the domains afterwards: without one, a
// caller would repeat a write that the API ignores, and nobody would know.
func (c DNSResource) PatchSplitDNS(ctx context.Context, domains map[string][]string) error {
	if err := c.checkDomains(domains); err != nil {
		return err
	}
	defer c.expireDNS()
	written, err := c.writeRich(ctx, func(d *dnsDocument) error { return d.setSplitDNS(domains) }, func() (bool, error) {
		current, err := c.api.DNS().SplitDNS(ctx)
		for domain, ns := range domains {
			if keepsAny(current[domain], ns) {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		return err
	}
	if !written {
		if err := c.patchSplitDNS(ctx, domains); err != nil {
			return err
		}
	}
	ignored, err := c.ignoredDomains(ctx, domains)
	if err != nil || len(ignored) == 0 {
		return err
	}
	return &Error{
		Class: ClassUnavailable, Scope: scopeDNSWrite, Status: http.StatusOK,
		Message: "it ignored a change of the nameservers for " + scrub(strings.Join(ignored[:min(len(ignored), maxNamedDomains)], ", ")) + "; change them in the admin console",
	}
}

// patchSplitDNS sets the nameservers of domains by the call for them alone. null removes a domain
// (OpenAPI, PATCH /tailnet/{tailnet}/dns/split-dns). The effect of an empty list is not documented, so
// it is the second attempt.
func (c DNSResource) patchSplitDNS(ctx context.Context, domains map[string][]string) error {
	patch, removed := make(map[string][]string, len(domains)), map[string][]string{}
	for domain, ns := range domains {
		patch[domain] = nil
		if len(ns) > 0 {
			patch[domain] = ns
		} else {
			removed[domain] = nil
		}
	}
	if err := c.sendSplitDNS(ctx, patch); err != nil || len(removed) == 0 {
		return err
	}
	ignored, err := c.ignoredDomains(ctx, removed)
	if err != nil || len(ignored) == 0 {
		return err
	}
	retry := make(map[string][]string, len(ignored))
	for _, domain := range ignored {
		retry[domain] = []string{}
	}
	return c.sendSplitDNS(ctx, retry)
}

// maxNamedDomains is how many domains an error names.
const maxNamedDomains = 3

// sendSplitDNS changes the domains that are named. It does not rely on the response.
func (c DNSResource) sendSplitDNS(ctx context.Context, domains map[string][]string) error {
	r := c.dnsWrite("split-dns")
	r.method = http.MethodPatch
	var err error
	if r.body, err = json.Marshal(domains); err != nil {
		return errors.Wrap(err, "cannot encode request")
	}
	_, err = c.do(ctx, r)
	return err
}

// ignoredDomains returns the domains for which the tailnet has other nameservers than those, sorted.
func (c DNSResource) ignoredDomains(ctx context.Context, domains map[string][]string) ([]string, error) {
	all, err := c.api.DNS().SplitDNS(ctx)
	if err != nil {
		return nil, classify(err, scopeDNS, true)
	}
	var out []string
	for domain, ns := range domains {
		if !sameAddresses(all[domain], ns) {
			out = append(out, domain)
		}
	}
	slices.Sort(out)
	return out, nil
}

// sameAddresses reports whether two lists have the same addresses, in any order.
func sameAddresses(a, b []string) bool {
	addresses := map[string]bool{}
	for _, x := range a {
		addresses[canonicalAddress(x)] = true
	}
	both := map[string]bool{}
	for _, x := range b {
		both[canonicalAddress(x)] = true
	}
	return maps.Equal(addresses, both)
}

// SetMagicDNS turns MagicDNS on or off.
func (c DNSResource) SetMagicDNS(ctx context.Context, enabled bool) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	return c.replace(ctx, c.dnsWrite("preferences"), map[string]bool{"magicDNS": enabled})
}

// SetOverrideLocalDNS changes only that setting. The API can only replace the whole configuration,
// so a concurrent write of another client may be lost.
func (c DNSResource) SetOverrideLocalDNS(ctx context.Context, enabled bool) error {
	if err := c.checkDomains(wholeDNS()); err != nil {
		return err
	}
	defer c.expireDNS()
	d, err := c.dnsDocument(ctx)
	if err != nil {
		return err
	}
	if d == nil {
		return errNoDNSDocument()
	}
	preferences := Fields{}
	if err := d.fields.decode("preferences", &preferences); err != nil {
		return err
	}
	var current bool
	if err := preferences.decode("overrideLocalDNS", &current); err != nil || current == enabled {
		return err
	}
	if preferences == nil {
		preferences = Fields{}
	}
	if err := errors.Join(preferences.set("overrideLocalDNS", enabled), d.fields.set("preferences", preferences)); err != nil {
		return err
	}
	return c.putDNSDocument(ctx, d)
}
