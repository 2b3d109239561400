// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

var errDown = errors.New("the target is down")

// forever is more dials than a test makes.
const forever = 1 << 30

// A doubtful is a fixture that serves port 10000, and dials a target that does not answer each millisecond.
type doubtful struct {
	*fixture

	// failures is the number of the next dials that fail, and dials that of all.
	failures, dials atomic.Int32

	// mute makes the target answer nothing, hang has dials get no answer, and outside has them find no node with the address.
	mute, hang, outside atomic.Bool

	// presence is the localapi.Presence of nodes.
	presence atomic.Int32

	// slow makes the next dial wait until the channel that it receives is closed.
	slow chan chan struct{}
}

func newDoubtful(t *testing.T, late time.Duration) *doubtful {
	t.Helper()
	return newDoubtfulRoute(t, late, Route{Target: "db", Addr: addrDB})
}

func newDoubtfulRoute(t *testing.T, late time.Duration, r Route) *doubtful {
	t.Helper()
	f := &doubtful{slow: make(chan chan struct{}, 1)}
	f.fixture = newFixture(t, func(c net.Conn) {
		defer func() { _ = c.Close() }()
		b := make([]byte, 4)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if f.mute.Load() {
				continue
			}
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	})
	answering := f.server.dial
	f.server.lateAfter, f.server.reportAfter, f.server.redial = late, time.Nanosecond, wait.Backoff{Duration: time.Millisecond}
	f.server.confirmAfter, f.server.waitLimit = 20*time.Millisecond, 20*time.Millisecond
	f.server.goneFor = time.Hour
	f.server.follow = func(netip.Addr) func() localapi.Presence {
		return func() localapi.Presence { return localapi.Presence(f.presence.Load()) }
	}
	f.server.dial = func(ctx context.Context, addr netip.AddrPort) (*localapi.Conn, error) {
		defer f.dials.Add(1)
		select {
		case release := <-f.slow:
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
		}
		if f.outside.Load() {
			return nil, localapi.ErrOutside
		}
		if f.hang.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if f.failures.Add(-1) >= 0 {
			return nil, errDown
		}
		return answering(ctx, addr)
	}
	f.server.Set(t.Context(), map[uint16]Route{10000: r})
	return f
}

// address returns the address at which the server listened last for port 10000.
func (f *doubtful) address() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ports[10000]
}

// isOpen reports whether port 10000 accepts connections. It may reset one so quickly that connecting fails.
func (f *doubtful) isOpen() bool {
	c, err := net.Dial("tcp", f.address())
	if err == nil {
		_ = c.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED)
}

// carries fails the test unless a connection carries bytes to the target and back.
func (f *doubtful) carries(c net.Conn) {
	f.t.Helper()
	if _, err := io.WriteString(c, "ping"); err != nil {
		f.t.Fatalf("WriteString(...): %v", err)
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		f.t.Fatalf("ReadFull(...): %v", err)
	}
}

// TestUnanswered checks that a port is closed while its target is down: Envoy's health check of a target
// without a path only connects.
func TestUnanswered(t *testing.T) {
	f := newDoubtful(t, patience)
	open := f.connect(10000)
	f.carries(open)

	f.failures.Store(forever)
	if diff := cmp.Diff(syscall.ECONNRESET, f.knock(10000), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("\nThe first connection must be reset: -want error, +got error:\n%s", diff)
	}
	f.eventually("A port whose target is down must be reported.", func() bool { return f.server.Unanswered(10000) })
	f.eventually("It must be closed.", func() bool { return !f.isOpen() })
	f.server.Set(t.Context(), map[uint16]Route{10000: {Target: "db", Addr: addrDB}})
	if f.isOpen() {
		t.Error("Setting the same route must not open it")
	}
	f.carries(open)

	f.failures.Store(0)
	f.eventually("It must open once the target answers.", func() bool { return !f.server.Unanswered(10000) })
	f.carries(f.connect(10000))
	f.carries(open)
}

// TestLateAnswer checks that a port is closed while a dial gets no answer at all, as from a node whose
// packets are lost, and that the connection that waits for it is carried in the end.
func TestLateAnswer(t *testing.T) {
	f := newDoubtful(t, 20*time.Millisecond)
	release := make(chan struct{})
	f.slow <- release
	waiting := f.connect(10000)
	f.eventually("The dial must wait.", func() bool { return len(f.slow) == 0 })
	f.failures.Store(forever)
	f.eventually("A port whose target is late must be closed.", func() bool { return f.server.Unanswered(10000) && !f.isOpen() })

	f.failures.Store(0)
	close(release)
	f.carries(waiting)
	f.eventually("The answer must open the port.", func() bool { return !f.server.Unanswered(10000) && f.isOpen() })
}

// TestOtherAnswers checks that a port stays open if another dial succeeds while one is late, or after one
// that failed: what serves is not closed.
func TestOtherAnswers(t *testing.T) {
	t.Run("Late", func(t *testing.T) {
		f := newDoubtful(t, patience)
		former := f.address()
		release := make(chan struct{})
		defer close(release)
		began := time.Now()
		f.slow <- release
		f.connect(10000)
		f.eventually("The dial must wait.", func() bool { return len(f.slow) == 0 })
		f.carries(f.connect(10000))
		p := f.server.port(10000)
		p.doubt(t.Context(), p.route(), began, true)
		if p.silentFor() > 0 || f.address() != former {
			t.Error("The port was closed")
		}
	})
	t.Run("Failed", func(t *testing.T) {
		f := newDoubtful(t, patience)
		former := f.address()
		f.failures.Store(1)
		if diff := cmp.Diff(syscall.ECONNRESET, f.knock(10000), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("\nThe dial fails: -want error, +got error:\n%s", diff)
		}
		f.eventually("Another dial must confirm that the target is down.", func() bool { return f.dials.Load() == 2 })
		f.eventually("The doubt must end.", func() bool {
			p := f.server.port(10000)
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.doubting == nil
		})
		f.carries(f.connect(10000))
		if f.address() != former {
			t.Error("The port was closed and opened again")
		}
	})
}

// TestUnansweredEnds checks that a port that is closed for its target follows its route.
func TestUnansweredEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		route  Route
		open   bool
	}{
		"OtherAddress": {
			reason: "Another address may answer.",
			route:  Route{Target: "db", Addr: netip.MustParseAddrPort("100.64.0.10:5432")},
			open:   true,
		},
		"NoAddress": {
			reason: "A target without an address is listened for, to refuse its connections.",
			route:  Route{Target: "db"},
			open:   true,
		},
		"Draining": {
			reason: "A port that drains accepts no connections, also once the target answers.",
			route:  Route{Target: "db", Addr: addrDB, Phase: Draining},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newDoubtful(t, patience)
			f.failures.Store(forever)
			if err := f.knock(10000); err == nil {
				t.Fatal("The target is down")
			}
			f.eventually("The port must be closed.", func() bool { return f.server.Unanswered(10000) })
			f.server.Set(t.Context(), map[uint16]Route{10000: tc.route})
			if f.server.Unanswered(10000) {
				t.Errorf("%s\nThe port still waits for the former target", tc.reason)
			}
			f.failures.Store(0)
			if got := f.isOpen(); got != tc.open {
				t.Errorf("%s\nThe port is open: %t, want %t", tc.reason, got, tc.open)
			}
		})
	}
}
