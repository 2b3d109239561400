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

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// deadline bounds how long a test waits for an event, also on a busy machine.
const deadline = time.Minute

func watch(t *testing.T, s *localapitest.Server) (*Watcher, <-chan State) {
	t.Helper()
	states := make(chan State, 1000)
	w := NewWatcher(NewClient(s.Socket), logging.NewNopLogger(), func(st State) { states <- st })
	run(t, w)
	return w, states
}

// run runs w until the test ends.
func run(t *testing.T, w *Watcher) {
	t.Helper()
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
}

// compared are the options for comparing the states of tests that are not about versions and certificates.
var compared = cmp.Options{cmpopts.IgnoreFields(State{}, "Version", "Polled", "CertDomains", "HTTPS", "HTTPSKnown", "Routes"), cmpopts.IgnoreUnexported(State{}), cmpopts.EquateEmpty()}

// await reads states until the wanted one arrives.
func await(t *testing.T, reason string, states <-chan State, want State) {
	t.Helper()
	var last State
	timeout := time.After(deadline)
	for {
		select {
		case last = <-states:
			if cmp.Equal(want, last, compared) {
				return
			}
		case <-timeout:
			t.Fatalf("\n%s\nstate: -want, +last:\n%s", reason, cmp.Diff(want, last, compared))
		}
	}
}

// TestWatcher watches tailscaled of a version with each kind of bus.
func TestWatcher(t *testing.T) {
	cases := map[string]struct {
		version string
		bus     localapitest.Bus
	}{
		"Newest": {version: tailscaled.Newest, bus: localapitest.BusStatus},
		"Oldest": {version: tailscaled.Oldest, bus: localapitest.BusNetmaps},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { testWatcher(t, tc.version, tc.bus) })
	}
}

func testWatcher(t *testing.T, version string, bus localapitest.Bus) {
	t.Helper()
	reloaded := make(chan struct{}, 1000)
	s := localapitest.New(t, func() { reloaded <- struct{}{} })
	s.SetVersion(version, bus)
	w, states := watch(t, s)

	await(t, "The first status must be published.", states, State{Session: 1})
	w.Reload()
	if n := s.Reloads(); n != 0 {
		t.Errorf("Config was reloaded %d times before tailscaled ran", n)
	}

	s.Set(ipn.Running)
	await(t, "The running state must be published.", states, State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{}})
	awaitReload(t, "Config must be reloaded when tailscaled begins to run.", reloaded)

	s.Set(ipn.Running, "svc:web", "svc:db")
	await(t, "Services that control accepted must be published.", states, State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true, "svc:db": true}})

	w.Reload()
	awaitReload(t, "Config must be reloaded when asked for.", reloaded)

	s.Disconnect()
	await(t, "A broken stream is taken up again.", states, State{Session: 2, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true, "svc:db": true}})
	awaitReload(t, "Config must be reloaded in a new session.", reloaded)

	s.Stop()
	await(t, "A tailscaled that stopped must be published.", states, State{Session: 2})

	s.Start()
	await(t, "A new tailscaled is a new session.", states, State{Session: 3})
}

// TestPolled watches a version that refuses to report anything: the Watcher asks for the status
// instead, until a new tailscaled reports again.
func TestPolled(t *testing.T) {
	reloaded := make(chan struct{}, 1000)
	s := localapitest.New(t, func() { reloaded <- struct{}{} })
	s.SetVersion("1.999.0", localapitest.BusRefused)
	s.SetPeers(localapitest.Peer(1, "db", nil, []string{"100.64.0.9"}))
	states, peers := make(chan State, 1000), NewPeers()
	w := NewWatcher(NewClient(s.Socket), logging.NewNopLogger(), func(st State) { states <- st }, WithPeers(peers))
	w.pollEvery = time.Millisecond
	run(t, w)
	next := func(reason string, ok func(State) bool) {
		t.Helper()
		for timeout := time.After(deadline); ; {
			select {
			case st := <-states:
				if ok(st) {
					return
				}
			case <-timeout:
				t.Fatal(reason)
			}
		}
	}
	s.Set(ipn.Running, "svc:web")
	next("The status must be published, and that it was requested.", func(st State) bool {
		return st.Polled && st.Running && st.Accepted["svc:web"] && st.Version == "1.999.0"
	})
	awaitReload(t, "Config must be reloaded when tailscaled runs.", reloaded)
	if h := peers.Find("db"); len(h.Devices) != 1 {
		t.Errorf("Find(%q): want the device of the status, got %+v", "db", h)
	}
	s.Set(ipn.Running, "svc:web", "svc:db")
	next("A change must be published.", func(st State) bool { return st.Polled && st.Accepted["svc:db"] })
	s.SetVersion(tailscaled.Newest, localapitest.BusStatus)
	next("Notifications must be read as soon as that is possible.", func(st State) bool {
		return !st.Polled && st.Accepted["svc:db"] && st.Session == 2
	})
}

func TestWatcherDenied(t *testing.T) {
	s := localapitest.New(t, func() {})
	s.Deny()
	w, states := watch(t, s)
	s.Set(ipn.Running)
	await(t, "A client with read access only must get the state.", states, State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{}})
	w.Reload()
	s.Set(ipn.Running, "svc:web")
	await(t, "Being denied stops nothing else.", states, State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true}})
}

func awaitReload(t *testing.T, reason string, reloaded <-chan struct{}) {
	t.Helper()
	select {
	case <-reloaded:
	case <-time.After(deadline):
		t.Fatal(reason)
	}
}
