// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package tailscaled

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tka"
	"tailscale.com/types/key"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestTailnetLock has a node enable tailnet lock, and proxies join with and without a signature in
// their auth keys: their peers, which verify it themselves, see only those with one.
func TestTailnetLock(t *testing.T) {
	t.Parallel()
	for version, program := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testTailnetLock(t, program)
		})
	}
}

func testTailnetLock(t *testing.T, program string) {
	t.Helper()
	sim := simtest.Start(t)
	api := sim.Client(t)
	admin := start(t, sim, program, "admin", sim.NewKey(t, false, tag).Key)
	admin.eventually("the node runs", func(s localapi.State) bool { return s.Running })

	// The lock trusts the key of the node, and the one that the platform team gives to the provider.
	private, secret := key.NewNLPrivate(), []byte("disable")
	var trusted []tka.Key
	for _, k := range []key.NLPublic{admin.lock(t).PublicKey, private.Public()} {
		trusted = append(trusted, tka.Key{Kind: tka.Key25519, Votes: 1, Public: k.Verifier()})
	}
	if _, err := admin.local.TailnetLockInit(t.Context(), trusted, [][]byte{tka.DisablementKDF(secret)}, nil); err != nil {
		t.Fatalf("cannot enable tailnet lock: %v", err)
	}
	admin.eventually("the node keeps the chain, and is signed", func(localapi.State) bool {
		s := admin.lock(t)
		return s.Enabled && s.NodeKeySigned
	})

	text, err := private.MarshalText()
	if err != nil {
		t.Fatalf("cannot encode the signing key: %v", err)
	}
	signer, err := tailscale.ParseLockSigner(string(text))
	if err != nil {
		t.Fatalf("cannot parse the signing key: %v", err)
	}
	wrapped, err := signer.WrapAuthKey(sim.NewKey(t, false, tag).Key)
	if err != nil {
		t.Fatalf("cannot wrap the auth key: %v", err)
	}
	signed := start(t, sim, program, "signed", wrapped)
	signed.eventually("a node with a wrapped key is signed", func(s localapi.State) bool { return s.Running && signed.lock(t).NodeKeySigned })
	// VisiblePeers of tailscaled's own status has no peers that came in deltas (ipn/ipnlocal,
	// tailnet-lock.go: TailnetLockStatus reads the last whole netmap).
	admin.eventually("its peers see it", func(localapi.State) bool { return admin.peers.Find("signed").Addr.IsValid() })

	plain := start(t, sim, program, "plain", sim.NewKey(t, false, tag).Key)
	plain.eventually("a node with a plain key runs", func(s localapi.State) bool { return s.Running && plain.lock(t).Enabled })
	admin.eventually("its peers drop it", func(localapi.State) bool { return drops(admin.lock(t), "plain") })
	if s := plain.lock(t); s.NodeKeySigned {
		t.Error("a node with a plain key is signed")
	}
	if admin.peers.Find("plain").Addr.IsValid() || drops(admin.lock(t), "signed") {
		t.Errorf("want only the plain node to be dropped, got %v", admin.lock(t).FilteredPeers)
	}
	for _, name := range []string{"admin", "signed", "plain"} {
		d, err := api.Devices().GetWithAllFields(t.Context(), deviceID(t, api, name))
		if err != nil {
			t.Fatalf("cannot get device %s: %v", name, err)
		}
		if locked := d.TailnetLockError != ""; locked != (name == "plain") {
			t.Errorf("device %s: the lock's error is %q", name, d.TailnetLockError)
		}
	}

	// Traffic between signed nodes flows.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go answer(l)
	to := &ipn.TCPPortHandler{TCPForward: l.Addr().String()}
	if err := signed.local.SetServeConfig(t.Context(), &ipn.ServeConfig{TCP: map[uint16]*ipn.TCPPortHandler{80: to}}); err != nil {
		t.Fatalf("cannot set the serve config: %v", err)
	}
	addr := netip.AddrPortFrom(admin.peers.Find("signed").Addr, 80)
	admin.get(t, "the signed peer", func(ctx context.Context) (net.Conn, error) { return localapi.NewDialer(admin.socket).Dial(ctx, addr) })

	// A person signs the node, and then disables the lock.
	if err := admin.local.TailnetLockSign(t.Context(), *plain.lock(t).NodeKey, plain.lock(t).PublicKey.Verifier()); err != nil {
		t.Fatalf("cannot sign the node: %v", err)
	}
	admin.eventually("its peers see it", func(localapi.State) bool { return admin.peers.Find("plain").Addr.IsValid() })
	if err := admin.local.TailnetLockDisable(t.Context(), secret); err != nil {
		t.Fatalf("cannot disable tailnet lock: %v", err)
	}
	for _, n := range []*node{admin, signed, plain} {
		n.eventually("nodes drop the chain", func(localapi.State) bool { return !n.lock(t).Enabled })
	}
}

// lock returns the state of tailnet lock as a node sees it.
func (n *node) lock(t *testing.T) *ipnstate.TailnetLockStatus {
	t.Helper()
	s, err := n.local.TailnetLockStatus(t.Context())
	if err != nil {
		t.Fatalf("cannot get the state of tailnet lock: %v", err)
	}
	return s
}

// drops reports whether a node drops a peer.
func drops(s *ipnstate.TailnetLockStatus, name string) bool {
	return slices.ContainsFunc(s.FilteredPeers, func(p *ipnstate.TKAPeer) bool { return p.Name == name+"."+tailnetDomain+"." })
}
