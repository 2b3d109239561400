// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package tailscaled

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"tailscale.com/health/healthmsg"
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
	admin := start(t, sim, program, "admin", sim.NewKey(t, false, tag).Key)
	admin.eventually("the node runs", func(s localapi.State) bool { return s.Running })

	// The lock trusts the key of the node, and the one that the platform team gives to the provider.
	private, secret := key.NewNLPrivate(), []byte("disable")
	own, provider := trusted(admin.lock(t).PublicKey), trusted(private.Public())
	if _, err := admin.local.TailnetLockInit(t.Context(), []tka.Key{own, provider}, [][]byte{tka.DisablementKDF(secret)}, nil); err != nil {
		t.Fatalf("cannot enable tailnet lock: %v", err)
	}
	admin.eventually("the node keeps the chain, and is signed", func(localapi.State) bool {
		s := admin.lock(t)
		return s.Enabled && s.NodeKeySigned
	})

	signed := start(t, sim, program, "signed", wrap(t, private, sim.NewKey(t, false, tag).Key))
	signed.eventually("a node with a wrapped key is signed", func(s localapi.State) bool { return s.Running && signed.lock(t).NodeKeySigned })
	// VisiblePeers of tailscaled's own status has no peers that came in deltas (ipn/ipnlocal,
	// tailnet-lock.go: TailnetLockStatus reads the last whole netmap).
	admin.eventually("its peers see it", func(localapi.State) bool { return admin.peers.Find("signed").Addr.IsValid() })

	plain := start(t, sim, program, "plain", sim.NewKey(t, false, tag).Key)
	plain.eventually("a node with a plain key runs", func(s localapi.State) bool { return s.Running && plain.lock(t).Enabled })
	admin.eventually("its peers drop it", func(localapi.State) bool { return drops(admin.lock(t), "plain") })
	plain.eventually("it warns that it is locked out", func(localapi.State) bool { return plain.lockedOut(t) })
	if plain.lock(t).NodeKeySigned || signed.lockedOut(t) {
		t.Error("want the plain node alone to be locked out")
	}
	if admin.peers.Find("plain").Addr.IsValid() || drops(admin.lock(t), "signed") {
		t.Errorf("want only the plain node to be dropped, got %v", admin.lock(t).FilteredPeers)
	}
	api := sim.Client(t)
	for _, name := range []string{"admin", "signed", "plain"} {
		d, err := api.Devices().GetWithAllFields(t.Context(), deviceID(t, api, name))
		if err != nil {
			t.Fatalf("cannot get device %s: %v", name, err)
		}
		if locked := d.TailnetLockError != ""; locked != (name == "plain") {
			t.Errorf("device %s: the lock's error is %q", name, d.TailnetLockError)
		}
	}
	reach(t, admin, signed)

	revoke(t, admin, signed, provider)
	late := start(t, sim, program, "late", wrap(t, private, sim.NewKey(t, false, tag).Key))
	late.eventually("a node whose key the revoked key has wrapped runs", func(s localapi.State) bool { return s.Running && late.lock(t).Enabled })
	admin.eventually("its peers drop it", func(localapi.State) bool { return drops(admin.lock(t), "late") })
	if drops(admin.lock(t), "signed") {
		t.Error("a node is dropped that was signed again")
	}

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

func trusted(k key.NLPublic) tka.Key {
	return tka.Key{Kind: tka.Key25519, Votes: 1, Public: k.Verifier()}
}

// wrap wraps an auth key as the provider does.
func wrap(t *testing.T, private key.NLPrivate, authKey string) string {
	t.Helper()
	text, err := private.MarshalText()
	if err != nil {
		t.Fatalf("cannot encode the signing key: %v", err)
	}
	signer, err := tailscale.ParseLockSigner(string(text))
	if err != nil {
		t.Fatalf("cannot parse the signing key: %v", err)
	}
	wrapped, err := signer.WrapAuthKey(authKey)
	if err != nil {
		t.Fatalf("cannot wrap the auth key: %v", err)
	}
	return wrapped
}

// reach has a node get an answer of a peer.
func reach(t *testing.T, from, to *node) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go answer(l)
	h := &ipn.TCPPortHandler{TCPForward: l.Addr().String()}
	if err := to.local.SetServeConfig(t.Context(), &ipn.ServeConfig{TCP: map[uint16]*ipn.TCPPortHandler{80: h}}); err != nil {
		t.Fatalf("cannot set the serve config: %v", err)
	}
	name, _ := to.config["Hostname"].(string)
	addr := netip.AddrPortFrom(from.peers.Find(name).Addr, 80)
	from.get(t, "the signed peer", func(ctx context.Context) (net.Conn, error) { return localapi.NewDialer(from.socket).Dial(ctx, addr) })
}

// revoke removes a trusted key as tailscale lock remove does: the only node that it has signed is
// signed again before (tailscale.com v1.102.5, cmd/tailscale/cli/tailnet-lock.go:
// runTailnetLockRemove).
func revoke(t *testing.T, admin, signed *node, k tka.Key) {
	t.Helper()
	id, err := k.ID()
	if err != nil {
		t.Fatalf("cannot get the key's ID: %v", err)
	}
	affected, err := admin.local.TailnetLockAffectedSigs(t.Context(), id)
	if err != nil || len(affected) != 1 {
		t.Fatalf("want the signature of a single node, got %d: %v", len(affected), err)
	}
	sig := &tka.NodeKeySignature{}
	if err := sig.Unserialize(affected[0]); err != nil {
		t.Fatalf("cannot decode the signature: %v", err)
	}
	rotation, _ := sig.UnverifiedWrappingPublic() // The node has verified it.
	if err := admin.local.TailnetLockSign(t.Context(), *signed.lock(t).NodeKey, rotation); err != nil {
		t.Fatalf("cannot sign the node again: %v", err)
	}
	if err := admin.local.TailnetLockModify(t.Context(), nil, []tka.Key{k}); err != nil {
		t.Fatalf("cannot remove the key: %v", err)
	}
	for _, n := range []*node{admin, signed} {
		n.eventually("nodes do not trust the key any more, and are signed", func(localapi.State) bool {
			s := n.lock(t)
			return len(s.TrustedKeys) == 1 && s.NodeKeySigned
		})
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

// lockedOut reports whether a node warns that its peers drop it.
func (n *node) lockedOut(t *testing.T) bool {
	t.Helper()
	s, err := n.local.StatusWithoutPeers(t.Context())
	if err != nil {
		t.Fatalf("cannot get the node's status: %v", err)
	}
	return slices.ContainsFunc(s.Health, func(h string) bool { return strings.Contains(h, healthmsg.LockedOut) })
}

// drops reports whether a node drops a peer.
func drops(s *ipnstate.TailnetLockStatus, name string) bool {
	return slices.ContainsFunc(s.FilteredPeers, func(p *ipnstate.TKAPeer) bool { return p.Name == name+"."+tailnetDomain+"." })
}
