// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/tka"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"
)

// TestLockOutlivesRestart checks that the chain of a state file is verified and used. How nodes use
// the chain is a test of package test/tailscaled.
func TestLockOutlivesRestart(t *testing.T) {
	private := key.NewNLPrivate()
	a, genesis, err := tka.Create(tka.ChonkMem(), tka.State{
		Keys:              []tka.Key{{Kind: tka.Key25519, Votes: 1, Public: private.Public().Verifier()}},
		DisablementValues: [][]byte{tka.DisablementKDF([]byte("secret"))},
	}, private)
	if err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	forged := genesis
	forged.Signatures = []tkatype.Signature{{KeyID: private.KeyID(), Signature: make([]byte, 64)}}
	cases := map[string]struct {
		reason string
		lock   *lockState
		want   *tailcfg.TKAInfo
		fails  bool
	}{
		"None":     {reason: "A tailnet that never had a lock says nothing about it."},
		"Enabled":  {reason: "Nodes compare the head with theirs.", lock: &lockState{Updates: []tkatype.MarshaledAUM{genesis.Serialize()}}, want: &tailcfg.TKAInfo{Head: a.Head().String()}},
		"Disabled": {reason: "Nodes that were away learn that the lock is disabled.", lock: &lockState{Updates: []tkatype.MarshaledAUM{genesis.Serialize()}, DisablementSecret: []byte("secret")}, want: &tailcfg.TKAInfo{Disabled: true}},
		"Forged":   {reason: "A chain that nodes would refuse is refused.", lock: &lockState{Updates: []tkatype.MarshaledAUM{forged.Serialize()}}, fails: true},
		"Empty":    {reason: "A lock needs a genesis.", lock: &lockState{}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{StateFile: filepath.Join(t.TempDir(), "state")}
			s, err := New(o)
			if err != nil {
				t.Fatalf("New(...): %v", err)
			}
			s.st.Lock = tc.lock
			if err := s.Close(); err != nil {
				t.Fatalf("Close(): %v", err)
			}
			s, err = New(o)
			if (err != nil) != tc.fails {
				t.Fatalf("\n%s\nNew(...): want an error: %t, got %v", tc.reason, tc.fails, err)
			}
			if tc.fails {
				return
			}
			t.Cleanup(func() { _ = s.Close() })
			if diff := cmp.Diff(tc.want, s.lockInfo); diff != "" {
				t.Errorf("\n%s\nlockInfo: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
