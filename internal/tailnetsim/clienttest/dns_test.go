// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"
)

func (w *world) magicDNS() bool {
	w.Helper()
	p, err := w.c.DNS().Preferences(w.ctx)
	w.ok(err)
	return p.MagicDNS
}

var dnsDrivers = map[string]driver{
	"DNS.Nameservers": func(w *world) {
		got, err := w.c.DNS().Nameservers(w.ctx)
		w.want([]string{}, got, err, cmpopts.EquateEmpty())
		w.ok(w.c.DNS().SetNameservers(w.ctx, []string{"1.1.1.1", "8.8.8.8"}))
		got, err = w.c.DNS().Nameservers(w.ctx)
		w.want([]string{"1.1.1.1", "8.8.8.8"}, got, err)
	},
	"DNS.SetNameservers": func(w *world) {
		w.ok(w.c.DNS().SetNameservers(w.ctx, []string{"1.1.1.1"}))
		w.want(true, w.magicDNS(), nil)
		// Without nameservers the API turns MagicDNS off.
		w.ok(w.c.DNS().SetNameservers(w.ctx, []string{}))
		got, err := w.c.DNS().Nameservers(w.ctx)
		w.want([]string{}, got, err, cmpopts.EquateEmpty())
		w.want(false, w.magicDNS(), nil)
	},
	"DNS.Preferences": func(w *world) {
		got, err := w.c.DNS().Preferences(w.ctx)
		w.want(&tailscale.DNSPreferences{MagicDNS: true}, got, err)
	},
	"DNS.SetPreferences": func(w *world) {
		w.ok(w.c.DNS().SetNameservers(w.ctx, []string{"1.1.1.1"}))
		for _, enabled := range []bool{false, true} {
			w.ok(w.c.DNS().SetPreferences(w.ctx, tailscale.DNSPreferences{MagicDNS: enabled}))
			w.want(enabled, w.magicDNS(), nil)
		}
	},
	"DNS.SearchPaths": func(w *world) {
		got, err := w.c.DNS().SearchPaths(w.ctx)
		w.want([]string{}, got, err, cmpopts.EquateEmpty())
	},
	"DNS.SetSearchPaths": func(w *world) {
		w.ok(w.c.DNS().SetSearchPaths(w.ctx, []string{"b.example.com", "a.example.com"}))
		got, err := w.c.DNS().SearchPaths(w.ctx)
		w.want([]string{"b.example.com", "a.example.com"}, got, err)
	},
	"DNS.SplitDNS": func(w *world) {
		got, err := w.c.DNS().SplitDNS(w.ctx)
		w.want(tailscale.SplitDNSResponse{}, got, err, cmpopts.EquateEmpty())
	},
	"DNS.SetSplitDNS": func(w *world) {
		w.ok(w.c.DNS().SetSplitDNS(w.ctx, tailscale.SplitDNSRequest{"old.example.com": {"10.0.0.1"}}))
		w.ok(w.c.DNS().SetSplitDNS(w.ctx, tailscale.SplitDNSRequest{"example.com": {"10.0.0.1", "10.0.0.2"}}))
		got, err := w.c.DNS().SplitDNS(w.ctx)
		w.want(tailscale.SplitDNSResponse{"example.com": {"10.0.0.1", "10.0.0.2"}}, got, err)
		w.ok(w.c.DNS().SetSplitDNS(w.ctx, tailscale.SplitDNSRequest{}))
		got, err = w.c.DNS().SplitDNS(w.ctx)
		w.want(tailscale.SplitDNSResponse{}, got, err, cmpopts.EquateEmpty())
	},
	"DNS.UpdateSplitDNS": func(w *world) {
		w.ok(w.c.DNS().SetSplitDNS(w.ctx, tailscale.SplitDNSRequest{"a.example.com": {"10.0.0.1"}, "b.example.com": {"10.0.0.2"}}))
		want := tailscale.SplitDNSResponse{"a.example.com": {"10.0.0.1"}, "c.example.com": {"10.0.0.3"}}
		got, err := w.c.DNS().UpdateSplitDNS(w.ctx, tailscale.SplitDNSRequest{"b.example.com": nil, "c.example.com": {"10.0.0.3"}})
		w.want(want, got, err)
		got, err = w.c.DNS().SplitDNS(w.ctx)
		w.want(want, got, err)
	},
	"DNS.Configuration": func(w *world) {
		got, err := w.c.DNS().Configuration(w.ctx)
		w.want(&tailscale.DNSConfiguration{Preferences: tailscale.DNSConfigurationPreferences{MagicDNS: true}}, got, err, cmpopts.EquateEmpty())
	},
	"DNS.SetConfiguration": func(w *world) {
		want := tailscale.DNSConfiguration{
			Nameservers: []tailscale.DNSConfigurationResolver{{Address: "1.1.1.1", UseWithExitNode: true}, {Address: "8.8.8.8"}},
			SplitDNS:    map[string][]tailscale.DNSConfigurationResolver{"example.com": {{Address: "10.0.0.1"}}},
			SearchPaths: []string{"example.com"},
			Preferences: tailscale.DNSConfigurationPreferences{MagicDNS: true, OverrideLocalDNS: true},
		}
		w.ok(w.c.DNS().SetConfiguration(w.ctx, want))
		got, err := w.c.DNS().Configuration(w.ctx)
		w.want(&want, got, err)
		// It replaces everything.
		w.ok(w.c.DNS().SetConfiguration(w.ctx, tailscale.DNSConfiguration{}))
		got, err = w.c.DNS().Configuration(w.ctx)
		w.want(&tailscale.DNSConfiguration{}, got, err, cmpopts.EquateEmpty())
	},
}
