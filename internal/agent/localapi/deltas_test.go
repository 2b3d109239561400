// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"
	"tailscale.com/tsnet"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// TestRecordsAfterFailure tests that a failed request for the names of services is made up for
// without another notification: control sends what changes only, so none may come.
func TestRecordsAfterFailure(t *testing.T) {
	s := localapitest.New(t, func() {})
	s.Set(ipn.Running)
	db := localapi.Device{Name: "db.example.ts.net", Addr: netip.MustParseAddr("100.64.0.9")}
	s.SetPeers(localapitest.Peer(1, "db", nil, []string{"100.64.0.9"}, "100.100.0.1/32"))
	_, eventually := follow(t, s)
	eventually("The device is known.", "db", host("100.64.0.9", db))

	s.FailDNSConfig(1)
	s.SetRecords(tailcfg.DNSRecord{Name: "web.example.ts.net.", Value: "100.100.0.1"})
	eventually("The name is known though the first request failed.", "web.example.ts.net", host("100.100.0.1", db))
}

// watchNode follows a real tailscaled.
func watchNode(t *testing.T, n *tsnet.Server) (*localapi.Peers, func(reason string, ok func(localapi.State) bool)) {
	t.Helper()
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a client: %v", err)
	}
	peers := localapi.NewPeers()
	changed := make(chan localapi.State, 1000)
	w := localapi.NewWatcher(lc, logging.NewNopLogger(), func(st localapi.State) { changed <- st }, localapi.WithPeers(peers))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	var last localapi.State
	return peers, func(reason string, ok func(localapi.State) bool) {
		t.Helper()
		deadline := time.After(time.Minute)
		for !ok(last) {
			select {
			case last = <-changed:
			case <-deadline:
				t.Fatalf("%s: last state %+v", reason, last)
			}
		}
	}
}

// TestDeltasOfTailscaled runs the watcher against a real tailscaled, to which control sends what
// changes, and in a second run whole maps.
func TestDeltasOfTailscaled(t *testing.T) {
	for name, whole := range map[string]bool{"Deltas": false, "WholeMaps": true} {
		t.Run(name, func(t *testing.T) {
			r := simtest.Start(t, simtest.AutoApprove, func(o *tailnetsim.Options) { o.Switches.WholeMaps = whole })
			n := r.NewNode(t, "proxy", "tag:k8s")
			peers, eventually := watchNode(t, n)
			eventually("tailscaled runs", func(st localapi.State) bool { return st.Running })
			find := func(host string) []string {
				var out []string
				for _, d := range peers.Find(host).Devices {
					state := ""
					if d.Offline {
						state = " offline"
					}
					out = append(out, d.Name+state)
				}
				return out
			}
			expect := func(reason, host string, want ...string) {
				t.Helper()
				eventually(reason, func(localapi.State) bool { return cmp.Equal(want, find(host), cmpopts.EquateEmpty()) })
			}
			full := func(label string) string { return label + "." + r.Domain() }

			for _, p := range []string{"a", "b"} {
				if _, err := r.Join(tailnetsim.Puppet{NodeID: "n" + p, Hostname: p, Tags: []string{"tag:k8s"}}); err != nil {
					t.Fatalf("cannot join: %v", err)
				}
			}
			expect("A device that joins is a target.", "a", full("a"))
			r.SetOnline("na", false)
			expect("A device that goes offline is known to be.", "a", full("a")+" offline")
			r.SetOnline("na", true)
			expect("So is one that comes back.", "a", full("a"))

			// A new service, with a host, that fails over.
			c := r.Client(t)
			if err := c.VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: "svc:web", Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}); err != nil {
				t.Fatalf("cannot create a service: %v", err)
			}
			eventually("The node may see the service.", func(st localapi.State) bool { return len(st.Visible["svc:web"]) == 2 })
			offer := tailnetsim.Offer{Service: "svc:web", Ports: []uint16{80}}
			for _, p := range []string{"na", "nb"} {
				if err := r.SetOffers(p, offer); err != nil {
					t.Fatalf("cannot offer: %v", err)
				}
			}
			expect("A new service is a target by its name.", full("web"), full("a"))
			r.SetOnline("na", false)
			expect("Its addresses move to the next host.", full("web"), full("b"))
			if err := r.SetOffers("nb"); err != nil {
				t.Fatalf("cannot withdraw: %v", err)
			}
			expect("Without a host it has no device.", full("web"))

			if err := c.Devices().Delete(t.Context(), "nb"); err != nil {
				t.Fatalf("cannot delete a device: %v", err)
			}
			expect("A deleted device is none.", "b")

			// A client that joins later is known by its address, and with its tags.
			cl := r.NewNode(t, "client", "tag:k8s")
			lc, err := cl.LocalClient()
			if err != nil {
				t.Fatalf("cannot get a client: %v", err)
			}
			st, err := lc.StatusWithoutPeers(t.Context())
			if err != nil {
				t.Fatalf("cannot get the client's status: %v", err)
			}
			addr := st.TailscaleIPs[0]
			expect("The client is a peer.", addr.String(), full("client"))
			own, err := n.LocalClient()
			if err != nil {
				t.Fatalf("cannot get a client: %v", err)
			}
			whois, err := own.WhoIs(t.Context(), netip.AddrPortFrom(addr, 1234).String())
			if err != nil {
				t.Fatalf("cannot identify the client: %v", err)
			}
			if diff := cmp.Diff([]string{"tag:k8s"}, whois.Node.Tags); diff != "" {
				t.Errorf("The client has its tags: -want, +got:\n%s", diff)
			}
			if err := c.Devices().SetTags(t.Context(), string(st.Self.ID), []string{"tag:k8s", "tag:k8s-operator"}); err != nil {
				t.Fatalf("cannot set tags: %v", err)
			}
			eventually("The client has its new tags.", func(localapi.State) bool {
				d := peers.Find("client").Devices
				return len(d) == 1 && len(d[0].Tags) == 2
			})
			if whois, err = own.WhoIs(t.Context(), netip.AddrPortFrom(addr, 1234).String()); err != nil || len(whois.Node.Tags) != 2 {
				t.Errorf("WhoIs has the new tags: %+v, %v", whois, err)
			}
		})
	}
}
