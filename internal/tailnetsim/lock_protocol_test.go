// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/tka"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"
)

// TestLockLogin has nodes log in with several keys, and a peer verify them.
func TestLockLogin(t *testing.T) {
	t.Parallel()
	signer, stranger := key.NewNLPrivate(), key.NewNLPrivate()
	type want struct {
		seen bool
		msg  string
	}
	cases := map[string]struct {
		reason string
		login  func(t *testing.T, n *lockNode)
		want   want
	}{
		"Wrapped": {
			reason: "A node whose auth key a trusted key has wrapped is trusted.",
			login:  func(t *testing.T, n *lockNode) { t.Helper(); n.register(wrap(t, signer), key.NodePublic{}) },
			want:   want{seen: true},
		},
		"Plain": {
			reason: "A node with a plain auth key logs in, and peers drop it.",
			login:  func(_ *testing.T, n *lockNode) { n.register(lockAuthKey, key.NodePublic{}) },
			want:   want{msg: "the node key has no signature"},
		},
		"Stranger": {
			reason: "A signature of a key that the lock does not trust is worth nothing.",
			login:  func(t *testing.T, n *lockNode) { t.Helper(); n.register(wrap(t, stranger), key.NodePublic{}) },
			want:   want{msg: "key not found"},
		},
		"SignedLater": {
			reason: "A person's signature helps a node with a plain auth key.",
			login: func(t *testing.T, n *lockNode) {
				t.Helper()
				n.register(lockAuthKey, key.NodePublic{})
				if err := n.s.SignDevice(string(n.device().StableID), signer); err != nil {
					t.Fatalf("SignDevice(...): %v", err)
				}
			},
			want: want{seen: true},
		},
		"Again": {
			reason: "A node that registers again with the same node key sends no signature, and keeps its own.",
			login: func(t *testing.T, n *lockNode) {
				t.Helper()
				n.register(wrap(t, signer), key.NodePublic{})
				n.register("", key.NodePublic{})
			},
			want: want{seen: true},
		},
		"Rotated": {
			reason: "A node that a person has signed signs its next node key with its own key.",
			login: func(t *testing.T, n *lockNode) {
				t.Helper()
				n.register(lockAuthKey, key.NodePublic{})
				if err := n.s.SignDevice(string(n.device().StableID), signer); err != nil {
					t.Fatalf("SignDevice(...): %v", err)
				}
				old := n.node
				n.node = key.NewNode().Public()
				n.register("", old)
			},
			want: want{seen: true},
		},
		"RotatedWrapped": {
			reason: "Only the key in a wrapped auth key may sign the next node key, and the node does not keep it (tailscale.com v1.102.5, tka/sig.go: SignByCredential, ResignNKS).",
			login: func(t *testing.T, n *lockNode) {
				t.Helper()
				n.register(wrap(t, signer), key.NodePublic{})
				old := n.node
				n.node = key.NewNode().Public()
				n.register("", old)
			},
			want: want{msg: "invalid signature"},
		},
		"RewrappedRotated": {
			reason: "With another wrapped auth key, it has a signature for the next node key.",
			login: func(t *testing.T, n *lockNode) {
				t.Helper()
				n.register(wrap(t, signer), key.NodePublic{})
				old := n.node
				n.node = key.NewNode().Public()
				n.register(wrap(t, signer), old)
			},
			want: want{seen: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLockServer(t)
			peer, n := newLockNode(t, s), newLockNode(t, s)
			peer.register(lockAuthKey, key.NodePublic{})
			if err := s.EnableLock(signer); err != nil {
				t.Fatalf("EnableLock(...): %v", err)
			}
			tc.login(t, n)
			got := want{seen: peer.sees(n), msg: n.lockError()}
			if got.seen != tc.want.seen || (got.msg == "") != (tc.want.msg == "") || !strings.Contains(got.msg, tc.want.msg) {
				t.Errorf("\n%s\nwant %+v, got %+v", tc.reason, tc.want, got)
			}
			if !n.sees(peer) {
				t.Errorf("\n%s\nthe peer was signed when the lock was enabled", tc.reason)
			}
		})
	}
}

// TestLockLife enables a lock, changes the keys that it trusts, and disables it.
func TestLockLife(t *testing.T) {
	t.Parallel()
	s := newLockServer(t)
	first, second, secret := key.NewNLPrivate(), key.NewNLPrivate(), []byte("secret")
	admin, peer, n := newLockNode(t, s), newLockNode(t, s), newLockNode(t, s)
	admin.register(lockAuthKey, key.NodePublic{})
	peer.register(lockAuthKey, key.NodePublic{})
	if s.lockInfo != nil {
		t.Errorf("a tailnet without a lock says %v of it", s.lockInfo)
	}
	admin.enable(secret, first)
	peer.sync()

	// The platform team trusts a key, which signs nodes from then on.
	expect := func(status int, msg string) {
		t.Helper()
		if status != http.StatusOK {
			t.Fatalf("cannot change the chain: %d %s", status, msg)
		}
	}
	expect(admin.update(first, func(b *tka.UpdateBuilder) error { return b.AddKey(trusted(second)) }))
	n.register(wrap(t, second), key.NodePublic{})
	if !peer.sees(n) {
		t.Error("a peer that knew the chain before does not get the update")
	}

	// Removing the key leaves its nodes without a trusted signature, unless they are signed again.
	affected := func() []tkatype.MarshaledSignature {
		t.Helper()
		res := tailcfg.TKASignaturesUsingKeyResponse{}
		admin.ask("affected-sigs", tailcfg.TKASignaturesUsingKeyRequest{NodeKey: admin.node, KeyID: second.KeyID()}, &res)
		return res.Signatures
	}
	if diff := cmp.Diff([]tkatype.MarshaledSignature{n.device().KeySignature}, affected()); diff != "" {
		t.Errorf("signatures of the key: -want, +got:\n%s", diff)
	}
	expect(admin.update(first, func(b *tka.UpdateBuilder) error { return b.RemoveKey(second.KeyID()) }))
	if peer.sees(n) || n.lockError() == "" {
		t.Error("a node is trusted that a removed key has signed")
	}
	if got := affected(); len(got) != 0 {
		t.Errorf("a removed key has %d valid signatures", len(got))
	}
	if err := s.SignDevice(string(n.device().StableID), second); err == nil {
		t.Error("a removed key signs")
	}
	if err := s.SignDevice(string(n.device().StableID), first); err != nil {
		t.Errorf("SignDevice(...): %v", err)
	}
	if !peer.sees(n) {
		t.Error("a node that was signed again is dropped")
	}

	admin.ask("disable", tailcfg.TKADisableRequest{NodeKey: admin.node, DisablementSecret: secret}, &tailcfg.TKADisableResponse{})
	if diff := cmp.Diff(&tailcfg.TKAInfo{Disabled: true}, s.lockInfo); diff != "" {
		t.Errorf("lockInfo: -want, +got:\n%s", diff)
	}
	boot := tailcfg.TKABootstrapResponse{}
	peer.ask("bootstrap", tailcfg.TKABootstrapRequest{NodeKey: peer.node, Head: peer.chain.Head().String()}, &boot)
	if !peer.chain.ValidDisablement(boot.DisablementSecret) {
		t.Error("nodes would not take the secret")
	}
}

// TestLockRefusals sends requests that control refuses.
func TestLockRefusals(t *testing.T) {
	t.Parallel()
	signer, stranger, secret := key.NewNLPrivate(), key.NewNLPrivate(), []byte("secret")
	genesis := genesisOf(t, secret, signer)
	type want struct {
		status int
		msg    string
	}
	cases := map[string]struct {
		reason   string
		unlocked bool
		send     func(n *lockNode) (int, string)
		want     want
	}{
		"BeginTwice": {
			reason: "A tailnet has a single chain.",
			send:   ask("init/begin", func(n *lockNode) any { return tailcfg.TKAInitBeginRequest{NodeKey: n.node, GenesisAUM: genesis} }),
			want:   want{http.StatusBadRequest, "the tailnet has a lock"},
		},
		"NoGenesis": {
			reason:   "A chain begins with a genesis.",
			unlocked: true,
			send:     ask("init/begin", func(n *lockNode) any { return tailcfg.TKAInitBeginRequest{NodeKey: n.node} }),
			want:     want{http.StatusBadRequest, "cannot decode update 0"},
		},
		"FinishFirst": {
			reason:   "A lock has a genesis before it is finished.",
			unlocked: true,
			send:     ask("init/finish", func(n *lockNode) any { return tailcfg.TKAInitFinishRequest{NodeKey: n.node} }),
			want:     want{http.StatusBadRequest, "the lock was not begun"},
		},
		"Unsigned": {
			reason:   "A lock that all nodes are locked out of is not enabled.",
			unlocked: true,
			send: func(n *lockNode) (int, string) {
				n.ask("init/begin", tailcfg.TKAInitBeginRequest{NodeKey: n.node, GenesisAUM: genesis}, &tailcfg.TKAInitBeginResponse{})
				return ask("init/finish", func(n *lockNode) any { return tailcfg.TKAInitFinishRequest{NodeKey: n.node} })(n)
			},
			want: want{http.StatusBadRequest, "cannot use the signature of node"},
		},
		"NoLock": {
			reason:   "Without a lock there is no chain.",
			unlocked: true,
			send:     ask("sync/offer", func(n *lockNode) any { return tailcfg.TKASyncOfferRequest{NodeKey: n.node} }),
			want:     want{http.StatusBadRequest, "the tailnet has no lock"},
		},
		"OtherMachine": {
			reason: "A node cannot speak for another one.",
			send: func(n *lockNode) (int, string) {
				n.machine = key.NewMachine().Public()
				return ask("bootstrap", func(n *lockNode) any { return tailcfg.TKABootstrapRequest{NodeKey: n.node} })(n)
			},
			want: want{http.StatusNotFound, "node not found"},
		},
		"ForgedUpdate": {
			reason: "Only a trusted key changes the chain.",
			send: func(n *lockNode) (int, string) {
				n.sync()
				head := n.chain.Head()
				forged := tka.AUM{MessageKind: tka.AUMRemoveKey, KeyID: signer.KeyID(), PrevAUMHash: head[:]}
				sigs, err := stranger.SignAUM(forged.SigHash())
				if err != nil {
					n.t.Fatalf("SignAUM(...): %v", err)
				}
				forged.Signatures = sigs
				return ask("sync/send", func(n *lockNode) any {
					return tailcfg.TKASyncSendRequest{NodeKey: n.node, MissingAUMs: []tkatype.MarshaledAUM{forged.Serialize()}}
				})(n)
			},
			want: want{http.StatusBadRequest, "cannot use update 0"},
		},
		"StrangerSigns": {
			reason: "Only a trusted key signs nodes.",
			send: ask("sign", func(n *lockNode) any {
				return tailcfg.TKASubmitSignatureRequest{NodeKey: n.node, Signature: signed(n, stranger, n.node)}
			}),
			want: want{http.StatusBadRequest, "cannot use the signature"},
		},
		"NoSuchNode": {
			reason: "Only nodes of the tailnet are signed.",
			send: ask("sign", func(n *lockNode) any {
				return tailcfg.TKASubmitSignatureRequest{NodeKey: n.node, Signature: signed(n, signer, key.NewNode().Public())}
			}),
			want: want{http.StatusBadRequest, "no node has the signed key"},
		},
		"WrongSecret": {
			reason: "Only the secret disables the lock.",
			send: ask("disable", func(n *lockNode) any {
				return tailcfg.TKADisableRequest{NodeKey: n.node, DisablementSecret: []byte("guess")}
			}),
			want: want{http.StatusBadRequest, "the disablement secret is wrong"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newLockNode(t, newLockServer(t))
			n.register(lockAuthKey, key.NodePublic{})
			if !tc.unlocked {
				n.enable(secret, signer)
			}
			info := n.s.lockInfo
			status, msg := tc.send(n)
			if status != tc.want.status || !strings.Contains(msg, tc.want.msg) {
				t.Errorf("\n%s\nwant %+v, got %d %s", tc.reason, tc.want, status, msg)
			}
			if diff := cmp.Diff(info, n.s.lockInfo); diff != "" {
				t.Errorf("\n%s\nlockInfo: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// ask returns a function that sends a request about the lock.
func ask(path string, req func(n *lockNode) any) func(n *lockNode) (int, string) {
	return func(n *lockNode) (int, string) {
		n.t.Helper()
		return n.send(http.MethodGet, "/machine/tka/"+path, req(n), &struct{}{})
	}
}

// signed returns a signature of a node key.
func signed(n *lockNode, signer key.NLPrivate, node key.NodePublic) tkatype.MarshaledSignature {
	n.t.Helper()
	sig, err := signNode(signer, tailcfg.TKASignInfo{NodePublic: node})
	if err != nil {
		n.t.Fatalf("signNode(...): %v", err)
	}
	return sig
}
