// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/netmap"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// Capabilities and names of nodes.
var (
	capabilityHTTPS = tailcfg.NodeCapMap{tailcfg.CapabilityHTTPS: nil}
	hostsWeb        = tailcfg.NodeCapMap{tailcfg.NodeAttrServiceHost: {`{"svc:web":["100.64.0.9"]}`}}
	names           = []string{"a.tail1234.ts.net"}
)

// A notified is a notification with the DNS config at its time.
type notified struct {
	ipn.Notify

	dns *tailcfg.DNSConfig
}

// status returns a first notification of a version that runs.
func status(version string, cm tailcfg.NodeCapMap, domains ...string) notified {
	return notified{Notify: ipn.Notify{Version: version, InitialStatus: &ipnstate.Status{
		BackendState: ipn.Running.String(), Self: &ipnstate.PeerStatus{CapMap: cm}, CertDomains: domains,
	}}}
}

// self returns the notification of a change of the node, and the names that the DNS config has then.
func self(cm tailcfg.NodeCapMap, domains ...string) notified {
	return notified{Notify: ipn.Notify{SelfChange: &tailcfg.Node{CapMap: cm}}, dns: &tailcfg.DNSConfig{CertDomains: domains}}
}

// whole returns the notification of a whole netmap.
func whole(version string, cm tailcfg.NodeCapMap, domains ...string) notified {
	return notified{Notify: ipn.Notify{Version: version, NetMap: &netmap.NetworkMap{ //nolint:staticcheck // As versions before 1.100 do.
		SelfNode: (&tailcfg.Node{CapMap: cm}).View(), DNS: tailcfg.DNSConfig{CertDomains: domains},
	}}}
}

func TestHTTPS(t *testing.T) {
	const tested, untested = tailscaled.Newest, "1.999.0"
	running := ipn.Running
	type want struct {
		HTTPS, Reported bool
		CertDomains     []string
	}
	cases := map[string]struct {
		reason   string
		notified []notified
		want     want
	}{
		"Starting": {
			reason:   "A starting tailscaled does not know its tailnet yet.",
			notified: []notified{{Notify: ipn.Notify{Version: tested, InitialStatus: &ipnstate.Status{BackendState: ipn.Starting.String()}}}},
		},
		"RunningBeforeNode": {
			reason:   "HTTPS is unknown before tailscaled has sent the node.",
			notified: []notified{{Notify: ipn.Notify{Version: tested, InitialStatus: &ipnstate.Status{BackendState: ipn.Starting.String()}}}, {Notify: ipn.Notify{State: &running}}},
		},
		"CertDomains": {
			reason:   "A node with certificate names has HTTPS.",
			notified: []notified{status(tested, nil, names...)},
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"Off": {
			reason:   "A node without names and capability has no HTTPS.",
			notified: []notified{status(tested, nil)},
			want:     want{Reported: true},
		},
		"TurnedOn": {
			reason:   "The Watcher must notice when HTTPS is turned on.",
			notified: []notified{status(tested, nil), self(capabilityHTTPS, names...)},
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"CapabilityAlone": {
			reason:   "The capability alone says that HTTPS is on: the names may follow.",
			notified: []notified{status(tested, nil), self(capabilityHTTPS)},
			want:     want{HTTPS: true, Reported: true},
		},
		"NamesAlone": {
			reason:   "Names in the DNS config mean that HTTPS is on, also without the capability.",
			notified: []notified{status(tested, capabilityHTTPS, names...), self(nil, names...)},
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"TurnedOff": {
			reason:   "The Watcher must notice when HTTPS is turned off: both say so.",
			notified: []notified{status(tested, capabilityHTTPS, names...), self(nil)},
			want:     want{Reported: true},
		},
		"DNSUnknown": {
			reason:   "Without an answer about the DNS config, a missing capability changes nothing.",
			notified: []notified{status(tested, capabilityHTTPS, names...), {Notify: self(nil).Notify}},
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"DNSUnknownButCapability": {
			reason:   "The capability suffices to turn HTTPS on.",
			notified: []notified{status(tested, nil), {Notify: self(capabilityHTTPS).Notify}},
			want:     want{HTTPS: true, Reported: true},
		},
		"Netmap": {
			reason:   "An old version reports names in whole netmaps.",
			notified: []notified{whole(tailscaled.Oldest, nil), whole("", nil, names...)},
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"NetmapWithSelf": {
			reason:   "Version 1.98 also reports the node, which has no names: the netmap counts.",
			notified: []notified{{Notify: ipn.Notify{Version: "1.98.10", NetMap: whole("", nil, names...).NetMap, SelfChange: &tailcfg.Node{}}}}, //nolint:staticcheck // As above.
			want:     want{HTTPS: true, Reported: true, CertDomains: names},
		},
		"UntestedOff": {
			reason:   "A capability that a version outside of the tested range does not report is unknown.",
			notified: []notified{status(untested, nil), self(nil)},
		},
		"UntestedOn": {
			reason:   "A capability that such a version reports counts, and nothing takes it back.",
			notified: []notified{status(untested, capabilityHTTPS), self(nil)},
			want:     want{HTTPS: true, Reported: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var st State
			for _, n := range tc.notified {
				st.update(n.Notify, n.dns)
			}
			got := want{HTTPS: st.HTTPS, Reported: st.HTTPSKnown, CertDomains: st.CertDomains}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nupdate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAcceptance(t *testing.T) {
	const tested, untested = tailscaled.Newest, "1.999.0"
	web := map[string]bool{"svc:web": true}
	type want struct {
		Accepted map[string]bool
		Reported bool
	}
	cases := map[string]struct {
		reason   string
		notified []notified
		want     want
	}{
		"Starting": {
			reason:   "A starting tailscaled does not know its node yet.",
			notified: []notified{{Notify: ipn.Notify{Version: tested, InitialStatus: &ipnstate.Status{BackendState: ipn.Starting.String()}}}},
		},
		"NotAccepted": {
			reason:   "A tested version reports each accepted service, so that the others are not accepted.",
			notified: []notified{status(tested, nil)},
			want:     want{Reported: true},
		},
		"Accepted": {
			reason:   "A change of the node can bring services.",
			notified: []notified{status(tested, nil), self(hostsWeb)},
			want:     want{Accepted: web, Reported: true},
		},
		"Netmap": {
			reason:   "An old version reports services in whole netmaps.",
			notified: []notified{{Notify: ipn.Notify{Version: tailscaled.Oldest, State: new(ipn.Running)}}, whole("", hostsWeb)},
			want:     want{Accepted: web, Reported: true},
		},
		"UntestedSilent": {
			reason:   "That a version outside of the tested range reports no service says nothing.",
			notified: []notified{status(untested, nil), self(nil)},
		},
		"VersionUnknown": {
			reason:   "Nor does it from a version that is not known.",
			notified: []notified{status("", nil)},
		},
		"UntestedAccepted": {
			reason:   "A version that has reported a service is known to report them.",
			notified: []notified{status(untested, hostsWeb), self(nil)},
			want:     want{Reported: true},
		},
		"Unreadable": {
			reason:   "A capability of another form changes nothing.",
			notified: []notified{status(tested, hostsWeb), self(tailcfg.NodeCapMap{tailcfg.NodeAttrServiceHost: {`["svc:web"]`}})},
			want:     want{Accepted: web},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var st State
			for _, n := range tc.notified {
				st.update(n.Notify, n.dns)
			}
			if diff := cmp.Diff(tc.want, want{Accepted: st.Accepted, Reported: st.AcceptedKnown}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nupdate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
