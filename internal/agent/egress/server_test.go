// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// patience bounds every wait of a test, also on a busy machine.
const patience = time.Minute

// addrDB is the target's address in the tailnet. Nothing listens on it on the host.
var addrDB = netip.MustParseAddrPort("100.64.0.9:5432")

// A fixture is a server with its tailscaled and its target.
type fixture struct {
	t       *testing.T
	local   *localapitest.Server
	server  *Server
	target  net.Listener
	changed chan struct{}

	mu    sync.Mutex
	ports map[uint16]string
}

// newFixture returns a fixture whose target calls handle for each connection.
func newFixture(t *testing.T, handle func(net.Conn), o ...ServerOption) *fixture {
	t.Helper()
	f := &fixture{t: t, local: localapitest.New(t, func() {}), ports: make(map[uint16]string), changed: make(chan struct{}, 100)}
	f.target = listenLoopback(t)
	go func() {
		for {
			c, err := f.target.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	f.local.SetDial(func(addr string) (net.Conn, error) {
		if addr != addrDB.String() {
			return nil, nil
		}
		return net.Dial("tcp", f.target.Addr().String())
	})
	f.server = NewServer(localapi.NewDialer(f.local.Socket).Dial, NewMetrics(), logging.NewNopLogger(), func() { f.changed <- struct{}{} },
		append(o, WithListen(func(_ context.Context, port uint16) ([]net.Listener, error) {
			l := listenLoopback(t)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ports[port] = l.Addr().String()
			return []net.Listener{l}, nil
		}))...)
	t.Cleanup(f.server.Close)
	return f
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen(...): %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// connect returns a connection to a port of the server.
func (f *fixture) connect(port uint16) *net.TCPConn {
	f.t.Helper()
	f.mu.Lock()
	addr := f.ports[port]
	f.mu.Unlock()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		f.t.Fatalf("net.Dial(...): %v", err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		f.t.Fatalf("SetDeadline(...): %v", err)
	}
	return c.(*net.TCPConn)
}

// knock returns the error of a connection to a port of the server. The server can refuse so
// quickly that connecting itself fails.
func (f *fixture) knock(port uint16) error {
	f.t.Helper()
	f.mu.Lock()
	addr := f.ports[port]
	f.mu.Unlock()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// eventually waits until ok returns true. It calls ok after each change that the server
// reports, and at short intervals.
func (f *fixture) eventually(reason string, ok func() bool) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-f.changed:
		case <-tick.C:
		case <-deadline:
			f.t.Fatal(reason)
		}
	}
}

// refused returns how many connections were refused for a reason.
func (f *fixture) refused(reason string) float64 {
	f.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(f.server.metrics)
	families, err := r.Gather()
	if err != nil {
		f.t.Fatalf("Gather(): %v", err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" && l.GetValue() == reason {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

func TestCarry(t *testing.T) {
	const size = 3 << 20
	big := strings.Repeat("0123456789abcdef", size/16)

	cases := map[string]struct {
		reason string
		handle func(net.Conn)
		client func(c *net.TCPConn) (string, error)
		want   string
	}{
		"AnswerAfterQuestion": {
			reason: "Bytes must be copied in both directions.",
			handle: echo,
			client: func(c *net.TCPConn) (string, error) {
				if _, err := io.WriteString(c, "hello"); err != nil {
					return "", err
				}
				b := make([]byte, 5)
				_, err := io.ReadFull(c, b)
				return string(b), err
			},
			want: "hello",
		},
		"TargetSpeaksFirst": {
			reason: "Data in the target's first segment must not be lost.",
			handle: func(c net.Conn) {
				_, _ = io.WriteString(c, "220 ready")
				_ = c.Close()
			},
			client: func(c *net.TCPConn) (string, error) {
				b, err := io.ReadAll(c)
				return string(b), err
			},
			want: "220 ready",
		},
		"HalfClosed": {
			reason: "A client that has closed its sending side must get the answer.",
			handle: func(c net.Conn) {
				b := make([]byte, len("question"))
				if _, err := io.ReadFull(c, b); err == nil {
					_, _ = io.WriteString(c, "answer to "+string(b))
				}
				_ = c.Close()
			},
			client: func(c *net.TCPConn) (string, error) {
				_, err := io.WriteString(c, "question")
				if err := errors.Join(err, c.CloseWrite()); err != nil {
					return "", err
				}
				b, err := io.ReadAll(c)
				return string(b), err
			},
			want: "answer to question",
		},
		"LargeAnswerToOneWhoStillSends": {
			reason: "An answer must be complete even if the target closes before its client does.",
			handle: func(c net.Conn) {
				b := make([]byte, 1)
				if _, err := io.ReadFull(c, b); err == nil {
					_, _ = io.WriteString(c, big)
				}
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			},
			client: func(c *net.TCPConn) (string, error) {
				if _, err := io.WriteString(c, "more and more"); err != nil {
					return "", err
				}
				b, err := io.ReadAll(c)
				return string(b), err
			},
			want: big,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.handle)
			if failed := f.server.Set(t.Context(), map[uint16]Route{10000: {Target: "db", Addr: addrDB}}); len(failed) > 0 {
				t.Fatalf("Set(...): %v", failed)
			}
			got, err := tc.client(f.connect(10000))
			if err != nil {
				t.Fatalf("\n%s\nclient: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%.500s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{addrDB.String()}, f.local.Dialled()); diff != "" {
				t.Errorf("\nThe target must be dialled through tailscaled: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	// The decoy has an address on the pod network that no peer holds.
	decoy := listenLoopback(t)
	touched := make(chan struct{}, 10)
	go func() {
		for {
			c, err := decoy.Accept()
			if err != nil {
				return
			}
			touched <- struct{}{}
			_ = c.Close()
		}
	}()

	cases := map[string]struct {
		reason  string
		route   Route
		down    bool
		dialled int
		metric  string
		outside bool
	}{
		"NoHost": {
			reason: "A target without a host must be refused without dialling.",
			route:  Route{Target: "db"},
			metric: reasonNoHost,
		},
		"Decoy": {
			reason:  "An address that tailscaled would dial on the pod network must be refused.",
			route:   Route{Target: "db", Addr: netip.MustParseAddrPort(decoy.Addr().String())},
			dialled: 1,
			metric:  reasonOutside,
			outside: true,
		},
		"NoTailscaled": {
			reason: "Without tailscaled nothing can be dialled.",
			route:  Route{Target: "db", Addr: addrDB},
			down:   true,
			metric: reasonDial,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, echo)
			// Nothing dials while the test counts.
			f.server.redial = wait.Backoff{Duration: patience}
			if tc.down {
				f.local.Stop()
			}
			f.server.Set(t.Context(), map[uint16]Route{10000: tc.route})
			if diff := cmp.Diff(syscall.ECONNRESET, f.knock(10000), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if n := len(f.local.Dialled()); n != tc.dialled {
				t.Errorf("\n%s\ntailscaled was asked %d times, want %d", tc.reason, n, tc.dialled)
			}
			f.eventually("The refusal must be counted: "+tc.metric, func() bool {
				return f.refused(tc.metric) == 1
			})
			if got := f.server.Outside(10000); got != tc.outside {
				t.Errorf("Outside(...): %t, want %t", got, tc.outside)
			}
			select {
			case <-touched:
				t.Errorf("\n%s\nThe decoy was dialled", tc.reason)
			default:
			}
		})
	}
}

func TestPhases(t *testing.T) {
	f := newFixture(t, echo)
	route := Route{Target: "db", Addr: addrDB}
	f.server.Set(t.Context(), map[uint16]Route{10000: route})
	c := f.connect(10000)
	ping := func(c net.Conn, text string) error {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
		b := make([]byte, len(text))
		_, err := io.ReadFull(c, b)
		return err
	}
	if err := ping(c, "one"); err != nil {
		t.Fatalf("A port must carry: %v", err)
	}
	if f.server.Idle(10000) {
		t.Error("A port with a connection must not be idle")
	}

	route.Phase = Leaving
	f.server.Set(t.Context(), map[uint16]Route{10000: route})
	late := f.connect(10000)
	if err := ping(late, "late"); err != nil {
		t.Errorf("A leaving port must still take connections: %v", err)
	}

	route.Phase = Draining
	f.server.Set(t.Context(), map[uint16]Route{10000: route})
	f.mu.Lock()
	addr := f.ports[10000]
	f.mu.Unlock()
	if n, err := net.Dial("tcp", addr); err == nil {
		t.Errorf("A draining port must take no connections, got %v", n.LocalAddr())
	}
	if err := ping(c, "two"); err != nil {
		t.Errorf("Connections of a draining port must stay open: %v", err)
	}
	if err := errors.Join(c.SetLinger(0), c.Close(), late.SetLinger(0), late.Close()); err != nil {
		t.Fatalf("Close(): %v", err)
	}
	f.eventually("A port whose connections have ended must be idle.", func() bool { return f.server.Idle(10000) })

	route.Phase = Serving
	f.server.Set(t.Context(), map[uint16]Route{10000: route})
	c = f.connect(10000)
	if err := ping(c, "three"); err != nil {
		t.Errorf("A port that is served again must carry connections: %v", err)
	}
	f.server.Set(t.Context(), nil)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("Connections of a removed port must be cut")
	}
}

func TestBusy(t *testing.T) {
	f := newFixture(t, echo)
	// Whatever the machine does, no dial ends before the test does.
	block, dialled := make(chan struct{}), atomic.Int32{}
	defer close(block)
	f.server.dial = func(context.Context, netip.AddrPort) (*localapi.Conn, error) {
		dialled.Add(1)
		<-block
		return nil, errors.New("too late")
	}
	f.server.lateAfter = patience
	f.server.Set(t.Context(), map[uint16]Route{10000: {Target: "db", Addr: addrDB}})
	for range maxDialling {
		f.connect(10000)
	}
	f.eventually("All connections must wait for the target.", func() bool { return dialled.Load() == maxDialling })
	if diff := cmp.Diff(syscall.ECONNRESET, f.knock(10000), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("\nA connection beyond the limit must be refused: -want error, +got error:\n%s", diff)
	}
}

func TestListenFails(t *testing.T) {
	fail := true
	s := NewServer(localapi.NewDialer("/nowhere").Dial, NewMetrics(), logging.NewNopLogger(), func() {},
		WithListen(func(context.Context, uint16) ([]net.Listener, error) {
			if fail {
				return nil, fmt.Errorf("bind: %w", syscall.EADDRINUSE)
			}
			return []net.Listener{listenLoopback(t)}, nil
		}))
	t.Cleanup(s.Close)
	routes := map[uint16]Route{10000: {Target: "db"}}
	if diff := cmp.Diff(syscall.EADDRINUSE, s.Set(t.Context(), routes)[10000], cmpopts.EquateErrors()); diff != "" {
		t.Errorf("\nSet must return the error of a port that it cannot listen on: -want error, +got error:\n%s", diff)
	}
	fail = false
	if failed := s.Set(t.Context(), routes); len(failed) > 0 {
		t.Errorf("A second Set must listen again: %v", failed)
	}
}
