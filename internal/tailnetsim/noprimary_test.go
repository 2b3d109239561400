// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/local"
	"tailscale.com/tailcfg"
	"tailscale.com/tsnet"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestNoPrimary(t *testing.T) {
	withdraw := func(t *testing.T, r *simtest.Running) {
		t.Helper()
		mustDo(t, r.SetOffers("nB"))
		mustDo(t, r.SetOffers("nB", web))
	}
	restart := func(t *testing.T, r *simtest.Running) {
		t.Helper()
		if !r.SetOnline("nB", false) || !r.SetOnline("nB", true) {
			t.Fatal("there is no nB")
		}
	}
	cases := map[string]struct {
		reason string
		remedy tailnetsim.PrimaryRemedy
		act    func(t *testing.T, r *simtest.Running)
		want   tailcfg.StableNodeID
	}{
		"Nothing":               {reason: "Hosts that do nothing stay without the addresses.", remedy: tailnetsim.RemedyAdvertisement, act: func(*testing.T, *simtest.Running) {}},
		"Advertised":            {reason: "A host that advertises again becomes primary.", remedy: tailnetsim.RemedyAdvertisement, act: withdraw, want: "nB"},
		"AdvertisedInVain":      {reason: "It does not where only a restart helps.", remedy: tailnetsim.RemedyRestart, act: withdraw},
		"Restarted":             {reason: "A host that was restarted becomes primary.", remedy: tailnetsim.RemedyRestart, act: restart, want: "nB"},
		"NeverByRestart":        {reason: "It does not where nothing helps.", remedy: tailnetsim.RemedyNone, act: restart},
		"NeverByAdvertisements": {reason: "Nor does an advertisement.", remedy: tailnetsim.RemedyNone, act: withdraw},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t, simtest.AutoApprove)
			createService(t, r)
			puppets(t, r, "nA", "nB")
			for _, id := range []string{"nA", "nB"} {
				mustDo(t, r.SetOffers(id, web))
			}
			set(t, r, func(w *tailnetsim.Switches) {
				w.NoPrimary = tailnetsim.NoPrimary{Services: []string{vipName}, Remedy: tc.remedy}
			})
			if p := r.Primary(vipName); p != "" {
				t.Fatalf("%s\nThe switch takes the addresses away: got %q", tc.reason, p)
			}
			tc.act(t, r)
			if diff := cmp.Diff(tc.want, r.Primary(vipName)); diff != "" {
				t.Errorf("%s\nPrimary(...): -want, +got:\n%s", tc.reason, diff)
			}
			set(t, r, func(w *tailnetsim.Switches) { w.NoPrimary = tailnetsim.NoPrimary{} })
			if p := r.Primary(vipName); p == "" {
				t.Error("Without the switch a host is primary again")
			}
		})
	}
}

// TestNoPrimaryOfNodes compares what real nodes see with tailscale/tailscale#19666.
func TestNoPrimaryOfNodes(t *testing.T) {
	r := simtest.Start(t, simtest.AutoApprove)
	vip := createService(t, r)
	n, cl := r.NewNode(t, "host", "tag:k8s"), r.NewNode(t, "client", "tag:k8s")
	host(t, n)
	simtest.Eventually(t, "a client has a route", func() bool { return simtest.Holder(t, cl, vip) != "" })
	simtest.Eventually(t, "the host sees that it is primary", func() bool { return selfOf(t, n).primary })

	set(t, r, func(w *tailnetsim.Switches) { w.NoPrimary = tailnetsim.NoPrimary{Services: []string{vipName}} })
	simtest.Eventually(t, "no client has a route", func() bool { return simtest.Holder(t, cl, vip) == "" })
	want := self{host: true, allowed: true}
	simtest.Eventually(t, "the host is not primary", func() bool { return !selfOf(t, n).primary })
	if diff := cmp.Diff(want, selfOf(t, n), cmp.AllowUnexported(self{})); diff != "" {
		t.Errorf("\nThe host keeps the capability and the addresses, as in tailscale/tailscale#19666: -want, +got:\n%s", diff)
	}
}

// self is what a node says of itself.
type self struct{ host, allowed, primary bool }

func selfOf(t *testing.T, n *tsnet.Server) self {
	t.Helper()
	st, err := must[*local.Client](t)(n.LocalClient()).StatusWithoutPeers(t.Context())
	if err != nil {
		t.Fatalf("cannot get the status: %v", err)
	}
	out := self{host: st.Self.CapMap.Contains(tailcfg.NodeAttrServiceHost)}
	if a := st.Self.AllowedIPs; a != nil {
		out.allowed = a.Len() > 2
	}
	if p := st.Self.PrimaryRoutes; p != nil {
		out.primary = p.Len() > 0
	}
	return out
}
