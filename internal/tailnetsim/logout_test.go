// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/local"
	"tailscale.com/ipn"
	"tailscale.com/tsnet"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestLogoutAndLoginAgain(t *testing.T) {
	r := simtest.Start(t)
	var (
		n  *tsnet.Server
		lc *local.Client
		id string
	)
	// A map that tailscaled gets before the logout and handles after it leaves it stopped, with the map
	// and without a key, and with another login it would crash (nextStateLocked and
	// LocalBackend.authReconfigLocked of tailscale.com v1.102.5). This happens to some nodes that have
	// just joined.
	for state, i := "", 0; state != ipn.NeedsLogin.String(); i++ {
		n = r.NewNode(t, fmt.Sprintf("node%d", i), "tag:k8s")
		id = simtest.NodeID(t, n)
		var err error
		if lc, err = n.LocalClient(); err != nil {
			t.Fatalf("cannot get a local client: %v", err)
		}
		if err := lc.Logout(t.Context()); err != nil {
			t.Fatalf("cannot log out: %v", err)
		}
		d, err := r.Client(t).Devices().Get(t.Context(), id)
		if err != nil {
			t.Fatalf("a logged out device stays: %v", err)
		}
		if d.Expires.After(time.Now()) {
			t.Errorf("a logged out device is not expired: %s", d.Expires)
		}
		simtest.Eventually(t, "the node is logged out, or stopped", func() bool {
			st, err := lc.StatusWithoutPeers(t.Context())
			if err != nil || st.HaveNodeKey {
				return false
			}
			state = st.BackendState
			return state == ipn.NeedsLogin.String() || state == ipn.Stopped.String()
		})
	}
	// The same machine with another key is the same device.
	if err := lc.Start(t.Context(), ipn.Options{AuthKey: r.NewKey(t, false, "tag:k8s").Key, UpdatePrefs: &ipn.Prefs{ControlURL: r.URL, WantRunning: true, Hostname: n.Hostname}}); err != nil {
		t.Fatalf("cannot start again: %v", err)
	}
	if err := lc.StartLoginInteractive(t.Context()); err != nil {
		t.Fatalf("cannot log in again: %v", err)
	}
	simtest.Eventually(t, "the node runs again", func() bool {
		st, err := lc.StatusWithoutPeers(t.Context())
		return err == nil && st.BackendState == ipn.Running.String()
	})
	if diff := cmp.Diff(id, simtest.NodeID(t, n)); diff != "" {
		t.Errorf("node id after the second login: -want, +got:\n%s", diff)
	}
}
