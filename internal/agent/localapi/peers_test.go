// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// follow returns Peers that are kept up to date with s, and a function that waits until a
// lookup has the wanted result.
func follow(t *testing.T, s *localapitest.Server) (*localapi.Peers, func(reason, host string, want localapi.Host)) {
	t.Helper()
	peers := localapi.NewPeers()
	changed := make(chan localapi.State, 1000)
	w := localapi.NewWatcher(localapi.NewClient(s.Socket), logging.NewNopLogger(), func(st localapi.State) { changed <- st }, localapi.WithPeers(peers))
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
	return peers, func(reason, host string, want localapi.Host) {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			got := peers.Find(host)
			diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateEmpty())
			if diff == "" {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("\n%s\nFind(%q): -want, +got:\n%s", reason, host, diff)
			}
		}
	}
}

func host(addr string, devices ...localapi.Device) localapi.Host {
	return localapi.Host{Addr: netip.MustParseAddr(addr), Devices: devices}
}

// TestPeers watches tailscaled of a version with each kind of bus.
func TestPeers(t *testing.T) {
	cases := map[string]struct {
		version string
		bus     localapitest.Bus
	}{
		"Newest": {version: tailscaled.Newest, bus: localapitest.BusStatus},
		"Oldest": {version: tailscaled.Oldest, bus: localapitest.BusNetmaps},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := localapitest.New(t, func() {})
			s.SetVersion(tc.version, tc.bus)
			testPeers(t, s)
		})
	}
}

func testPeers(t *testing.T, s *localapitest.Server) {
	t.Helper()
	db := localapi.Device{Name: "db.example.ts.net", Addr: netip.MustParseAddr("100.64.0.9"), Tags: []string{"tag:db"}}
	router := localapi.Device{Name: "router.example.ts.net", Addr: netip.MustParseAddr("100.64.0.2")}
	router2 := localapi.Device{Name: "router2.example.ts.net", Addr: netip.MustParseAddr("100.64.0.3")}
	nobody := localapi.Host{}

	s.Set(ipn.Running)
	s.SetPeers(
		localapitest.Peer(1, "db", []string{"tag:db"}, []string{"fd7a:115c:a1e0::9", "100.64.0.9"}, "100.100.0.1/32"),
		localapitest.Peer(2, "router", nil, []string{"100.64.0.2"}, "10.1.0.0/16", "0.0.0.0/0", "192.0.2.7/32"),
	)
	peers, eventually := follow(t, s)

	eventually("A device has its own address.", "100.64.0.9", host("100.64.0.9", db))
	eventually("A device has its own IPv6 address.", "fd7a:115c:a1e0::9", host("fd7a:115c:a1e0::9", db))
	eventually("A device has its name; of its addresses the IPv4 one is taken.", "DB.example.ts.net.", host("100.64.0.9", db))
	eventually("A short name is one of the tailnet's.", "db", host("100.64.0.9", db))
	eventually("A device has the addresses of the services that it hosts.", "100.100.0.1", host("100.100.0.1", db))
	eventually("Nobody has an address that no peer takes traffic for.", "100.64.0.77", nobody)
	eventually("An exit node does not have all addresses.", "198.51.100.1", nobody)
	eventually("The node itself is no target.", "self", nobody)
	eventually("Routes are not used unless the node accepts them.", "10.1.2.3", localapi.Host{RouteUnused: true})
	eventually("That goes for single addresses outside of the tailnet's ranges, too.", "192.0.2.7", localapi.Host{RouteUnused: true})

	s.SetRoutes(true)
	eventually("Routes are used if the node accepts them.", "10.1.2.3", host("10.1.2.3", router))
	eventually("So is a route for one address.", "192.0.2.7", host("192.0.2.7", router))
	eventually("An exit node does not have all addresses even then.", "198.51.100.1", nobody)

	s.ChangePeers([]*tailcfg.Node{localapitest.Peer(3, "router2", nil, []string{"100.64.0.3"}, "10.1.2.0/24")})
	eventually("The longest route that holds an address has it.", "10.1.2.3", host("10.1.2.3", router2))
	eventually("Others stay.", "10.1.3.3", host("10.1.3.3", router))
	s.ChangePeers(nil, 3)
	eventually("A route goes with its router.", "10.1.2.3", host("10.1.2.3", router))

	s.SetRecords(tailcfg.DNSRecord{Name: "web.example.ts.net.", Value: "100.100.0.1"}, tailcfg.DNSRecord{Name: "gone.example.ts.net", Value: "100.100.0.2"})
	eventually("A service has its name.", "web.example.ts.net", host("100.100.0.1", db))
	for name, want := range map[string]string{"web.example.ts.net": "100.100.0.1", "DB.example.ts.net.": "100.64.0.9", "router": "100.64.0.2"} {
		for _, addr := range []string{"100.100.0.1", "100.64.0.9", "100.64.0.2"} {
			if got := peers.Has(name, netip.MustParseAddr(addr)); got != (addr == want) {
				t.Errorf("\nA name must have only its addresses.\nHas(%q, %s): %t", name, addr, got)
			}
		}
	}
	eventually("A service that nobody hosts has no host.", "gone.example.ts.net", nobody)

	s.ChangePeers([]*tailcfg.Node{localapitest.Peer(1, "db", []string{"tag:new"}, []string{"100.64.0.10"})})
	renumbered := localapi.Device{Name: "db.example.ts.net", Addr: netip.MustParseAddr("100.64.0.10"), Tags: []string{"tag:new"}}
	eventually("A device may get other addresses and tags.", "db", host("100.64.0.10", renumbered))
	eventually("Its old address is nobody's.", "100.64.0.9", nobody)
	eventually("A service goes with its host.", "web.example.ts.net", nobody)

	expired := localapitest.Peer(1, "db", nil, []string{"100.64.0.10"})
	expired.Expired = true
	s.ChangePeers([]*tailcfg.Node{expired})
	eventually("A device whose key has expired takes no traffic.", "100.64.0.10", nobody)

	s.SetPeers(localapitest.Peer(9, "other", nil, []string{"100.64.0.99"}))
	eventually("In a whole new netmap those that are not named have gone.", "router.example.ts.net", nobody)
	eventually("Those that are named are there.", "other", host("100.64.0.99", localapi.Device{Name: "other.example.ts.net", Addr: netip.MustParseAddr("100.64.0.99")}))

	s.Stop()
	s.Start()
	s.Set(ipn.Running)
	eventually("A restarted tailscaled must report the same peers.", "other", host("100.64.0.99", localapi.Device{Name: "other.example.ts.net", Addr: netip.MustParseAddr("100.64.0.99")}))
}

// BenchmarkFind looks up an address in a tailnet of 10,000 devices.
func BenchmarkFind(b *testing.B) {
	peers := localapi.NewPeers()
	nodes := make([]*tailcfg.Node, 0, 10_000)
	addr := netip.MustParseAddr("100.64.0.1")
	for i := range cap(nodes) {
		nodes = append(nodes, localapitest.Peer(tailcfg.NodeID(i+1), "n", nil, []string{addr.String()}))
		addr = addr.Next()
	}
	localapi.Update(peers, ipn.Notify{PeersChanged: nodes})
	for b.Loop() {
		if !peers.Find("100.64.3.7").Addr.IsValid() {
			b.Fatal("not found")
		}
	}
}

// blocked returns a dial function that closes dialled when it is called, and fails once release is
// closed.
func blocked(dialled chan<- struct{}, release <-chan struct{}) func(string) (net.Conn, error) {
	report := sync.OnceFunc(func() { close(dialled) })
	return func(string) (net.Conn, error) {
		report()
		<-release
		return nil, errors.New("connection was refused")
	}
}

func TestDial(t *testing.T) {
	addr := netip.MustParseAddrPort("100.64.0.9:5432")
	s := localapitest.New(t, func() {})
	d := localapi.NewDialer(s.Socket)

	if _, err := d.Dial(t.Context(), addr); !cmp.Equal(localapi.ErrOutside, err, cmpopts.EquateErrors()) {
		t.Errorf("An address that tailscaled leaves to its client to dial must be refused, got: %v", err)
	}

	dialled, release := make(chan struct{}), make(chan struct{})
	s.SetDial(blocked(dialled, release))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-dialled
		cancel()
	}()
	if _, err := d.Dial(ctx, addr); !cmp.Equal(context.Canceled, err, cmpopts.EquateErrors()) {
		t.Errorf("A dial must end with its context, got: %v", err)
	}
	close(release)
	if _, err := d.Dial(t.Context(), addr); err == nil || cmp.Equal(localapi.ErrOutside, err, cmpopts.EquateErrors()) {
		t.Errorf("A target that does not answer must cause a different error, got: %v", err)
	}
	s.Stop()
	if _, err := d.Dial(t.Context(), addr); err == nil {
		t.Error("Dial must fail without tailscaled")
	}
}

func TestDialRefused(t *testing.T) {
	addr := netip.MustParseAddrPort("100.64.0.9:5432")
	cases := map[string]struct {
		reason  string
		refused int32
		want    int32
		answers bool
	}{
		"Twice": {
			reason:  "A connection that the target's tailscaled refuses must be tried again: it refuses some that the target would accept.",
			refused: 2, want: 3, answers: true,
		},
		"Closed": {
			reason:  "A port that is closed must be refused after few attempts.",
			refused: 100, want: 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := localapitest.New(t, func() {})
			var attempts atomic.Int32
			s.SetDial(func(string) (net.Conn, error) {
				if attempts.Add(1) <= tc.refused {
					return nil, errors.New("connection was refused")
				}
				_, conn := net.Pipe()
				return conn, nil
			})
			start := time.Now()
			c, err := localapi.NewDialer(s.Socket).Dial(t.Context(), addr)
			took := time.Since(start)
			if err == nil {
				err = c.Close()
			}
			// On a slow machine, another attempt begins after 0.4 s, or this one is not repeated.
			if took < 400*time.Millisecond && (tc.answers != (err == nil) || attempts.Load() != tc.want) {
				t.Errorf("\n%s\nDial(...): got %d attempts, want %d; error: %v", tc.reason, attempts.Load(), tc.want, err)
			}
		})
	}
}

func TestDialRepeats(t *testing.T) {
	addr := netip.MustParseAddrPort("100.64.0.9:5432")
	s := localapitest.New(t, func() {})
	d := localapi.NewDialer(s.Socket)

	// The target ignores the ports of the first attempts.
	const ignored = 4
	var attempts atomic.Int32
	release := make(chan struct{})
	s.SetDial(func(string) (net.Conn, error) {
		if attempts.Add(1) <= ignored {
			<-release
			return nil, errors.New("connection timed out")
		}
		target, conn := net.Pipe()
		go func() {
			_, _ = target.Write([]byte("hello"))
			_ = target.Close()
		}()
		return conn, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	start := time.Now()
	c, err := d.Dial(ctx, addr)
	if err != nil {
		t.Fatalf("An attempt must connect while a client waits, got: %v", err)
	}
	took := time.Since(start)
	if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
		t.Errorf("Other attempts must not disturb the connection, got: %q, %v", b, err)
	}
	close(release)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	// The next attempt begins after five seconds, before this one has connected on a very slow machine.
	if n := attempts.Load(); n != ignored+1 && took < 5*time.Second {
		t.Errorf("A dial must not be repeated after it has connected, got %d attempts within %s", n, took)
	}
}
