// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
)

// deadline bounds how long a test waits for an event.
const deadline = 20 * time.Second

func watch(t *testing.T, s *localapitest.Server) (*Watcher, <-chan State) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	states := make(chan State, 1000)
	w := NewWatcher(NewClient(s.Socket), logging.NewNopLogger(), func(st State) { states <- st })
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w, states
}

// await reads states until the wanted one arrives.
func await(t *testing.T, reason string, states <-chan State, want State) {
	t.Helper()
	var last State
	timeout := time.After(deadline)
	for {
		select {
		case last = <-states:
			if cmp.Equal(want, last, cmpopts.IgnoreFields(State{}, "HTTPS", "HTTPSKnown", "Routes")) {
				return
			}
		case <-timeout:
			t.Fatalf("\n%s\nstate: -want, +last:\n%s", reason, cmp.Diff(want, last))
		}
	}
}

func TestWatcher(t *testing.T) {
	reloaded := make(chan struct{}, 1000)
	s := localapitest.New(t, func() { reloaded <- struct{}{} })
	w, states := watch(t, s)

	await(t, "The first status must be published.", states, State{Session: 1, Accepted: map[string]bool{}})
	w.Reload()
	if n := s.Reloads(); n != 0 {
		t.Errorf("Config was reloaded %d times before tailscaled ran", n)
	}

	s.Set(ipn.Running)
	await(t, "The running state must be published.", states, State{Session: 1, Running: true, Accepted: map[string]bool{}})
	awaitReload(t, "Config must be reloaded when tailscaled begins to run.", reloaded)

	s.Set(ipn.Running, "svc:web", "svc:db")
	await(t, "Services that control accepted must be published.", states, State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true, "svc:db": true}})

	w.Reload()
	awaitReload(t, "Config must be reloaded when asked for.", reloaded)

	s.Disconnect()
	await(t, "A broken stream is taken up again.", states, State{Session: 2, Running: true, Accepted: map[string]bool{"svc:web": true, "svc:db": true}})
	awaitReload(t, "Config must be reloaded in a new session.", reloaded)

	s.Stop()
	await(t, "A tailscaled that stopped must be published.", states, State{Session: 2})

	s.Start()
	await(t, "A new tailscaled is a new session.", states, State{Session: 3, Accepted: map[string]bool{}})
}

func TestWatcherDenied(t *testing.T) {
	s := localapitest.New(t, func() {})
	s.Deny()
	w, states := watch(t, s)
	s.Set(ipn.Running)
	await(t, "A client with read access only must get the state.", states, State{Session: 1, Running: true, Accepted: map[string]bool{}})
	w.Reload()
	s.Set(ipn.Running, "svc:web")
	await(t, "Being denied stops nothing else.", states, State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
}

func TestHTTPS(t *testing.T) {
	https := tailcfg.NodeCapMap{tailcfg.CapabilityHTTPS: nil}
	running := ipn.Running
	cases := map[string]struct {
		reason   string
		notified []ipn.Notify
		https    bool
		known    bool
	}{
		"Starting": {
			reason:   "A starting tailscaled does not know its tailnet yet.",
			notified: []ipn.Notify{{InitialStatus: &ipnstate.Status{BackendState: ipn.Starting.String()}}},
		},
		"RunningBeforeNode": {
			reason:   "HTTPS is unknown before tailscaled has sent the node.",
			notified: []ipn.Notify{{InitialStatus: &ipnstate.Status{BackendState: ipn.Starting.String()}}, {State: &running}},
		},
		"CertDomains": {
			reason:   "A node with certificate names has HTTPS.",
			notified: []ipn.Notify{{InitialStatus: &ipnstate.Status{BackendState: ipn.Running.String(), CertDomains: []string{"a.tail1234.ts.net"}}}},
			https:    true,
			known:    true,
		},
		"Off": {
			reason:   "A node without names and capability has no HTTPS.",
			notified: []ipn.Notify{{InitialStatus: &ipnstate.Status{BackendState: ipn.Running.String()}}},
			known:    true,
		},
		"TurnedOn": {
			reason: "The Watcher must notice when HTTPS is turned on.",
			notified: []ipn.Notify{
				{InitialStatus: &ipnstate.Status{BackendState: ipn.Running.String()}},
				{SelfChange: &tailcfg.Node{CapMap: https}},
			},
			https: true,
			known: true,
		},
		"TurnedOff": {
			reason: "The Watcher must notice when HTTPS is turned off.",
			notified: []ipn.Notify{
				{InitialStatus: &ipnstate.Status{BackendState: ipn.Running.String(), CertDomains: []string{"a.tail1234.ts.net"}}},
				{SelfChange: &tailcfg.Node{}},
			},
			known: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var st State
			for _, n := range tc.notified {
				st.update(n)
			}
			if st.HTTPS != tc.https || st.HTTPSKnown != tc.known {
				t.Errorf("\n%s\nupdate(...): want HTTPS %t, known %t, got %t, %t", tc.reason, tc.https, tc.known, st.HTTPS, st.HTTPSKnown)
			}
		})
	}
}

func awaitReload(t *testing.T, reason string, reloaded <-chan struct{}) {
	t.Helper()
	select {
	case <-reloaded:
	case <-time.After(deadline):
		t.Fatal(reason)
	}
}
