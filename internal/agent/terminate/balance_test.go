// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// An echo is a TCP backend that begins each connection with its name, and then returns what it gets.
type echo struct {
	name string
	addr string
	l    net.Listener
}

func newEcho(t *testing.T, name, addr string) *echo {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(l) })
	e := &echo{name: name, addr: l.Addr().String(), l: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer closeQuietly(c)
				if _, err := io.WriteString(c, name+"\n"); err != nil {
					return
				}
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return e
}

func (e *echo) backend(weight, priority int) balance.Backend {
	return balance.Backend{Address: e.addr, Weight: weight, Priority: priority, Health: probe.Healthy}
}

// A session is a client's connection, and the name of the backend that it has.
type session struct {
	net.Conn
	r    *bufio.Reader
	name string
}

func open(t *testing.T, addr netip.AddrPort) session {
	t.Helper()
	s := session{Conn: dial(t, addr, someone)}
	s.r = bufio.NewReader(s.Conn)
	line, err := s.r.ReadString('\n')
	if err != nil {
		t.Fatalf("cannot read the name of the backend: %v", err)
	}
	s.name = strings.TrimSpace(line)
	return s
}

// works verifies that a connection is open in both directions.
func (s session) works(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(s.Conn, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.r.ReadString('\n'); err != nil || got != "ping\n" {
		t.Errorf("want ping, got %q, %v", got, err)
	}
}

func balanced(addr netip.AddrPort, leastConnections bool, b ...balance.Backend) plan.Termination {
	return plan.Termination{Listen: addr, Balance: &balance.Config{Backends: b, LeastConnections: leastConnections}}
}

// amongTwo returns a termination whose backend is the second of two, of which the first refuses
// connections, and is not known to be unhealthy.
func amongTwo(t *testing.T, end plan.Termination) plan.Termination {
	t.Helper()
	end.Balance = &balance.Config{Backends: []balance.Backend{
		{Address: freeAddress(t).String(), Weight: 1, Health: probe.Healthy},
		{Address: end.Backend, Weight: 1, Health: probe.Healthy},
	}}
	end.Backend = ""
	return end
}

// TestWeights opens 400 connections to two backends.
func TestWeights(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	a, b := newEcho(t, "a", "127.0.0.1:0"), newEcho(t, "b", "127.0.0.1:0")
	at := freeAddress(t)
	set(t, s, balanced(at, false, a.backend(3, 0), b.backend(1, 0)))
	got := map[string]int{}
	for range 400 {
		c := open(t, at)
		got[c.name]++
		closeQuietly(c.Conn)
	}
	if diff := cmp.Diff(map[string]int{"a": 300, "b": 100}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestFailover has the primary fail and return.
func TestFailover(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	primary, secondary := newEcho(t, "primary", "127.0.0.1:0"), newEcho(t, "secondary", "127.0.0.1:0")
	at := freeAddress(t)
	first, second := primary.backend(1, 0), secondary.backend(1, 1)
	set(t, s, balanced(at, false, first, second))
	initial := open(t, at)
	if initial.name != "primary" {
		t.Fatalf("want the primary, got %s", initial.name)
	}

	// The next connection finds out first, and the probes after that.
	closeQuietly(primary.l)
	during := open(t, at)
	first.Health = probe.Unhealthy
	set(t, s, balanced(at, false, first, second))
	repeat := open(t, at)
	if during.name != "secondary" || repeat.name != "secondary" {
		t.Errorf("want the secondary, got %s, and %s", during.name, repeat.name)
	}
	initial.works(t)

	newEcho(t, "primary", primary.addr)
	first.Health = probe.Healthy
	set(t, s, balanced(at, false, first, second))
	recovered := open(t, at)
	if recovered.name != "primary" {
		t.Errorf("want the primary again, got %s", recovered.name)
	}
	for _, c := range []session{initial, during, repeat, recovered} {
		c.works(t)
	}
}

// TestLeastConnections holds connections to one backend.
func TestLeastConnections(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	a, b := newEcho(t, "a", "127.0.0.1:0"), newEcho(t, "b", "127.0.0.1:0")
	at := freeAddress(t)
	set(t, s, balanced(at, true, a.backend(1, 0), b.backend(1, 0)))
	sessions := map[string][]session{}
	for range 6 {
		c := open(t, at)
		sessions[c.name] = append(sessions[c.name], c)
	}
	if len(sessions["a"]) != 3 || len(sessions["b"]) != 3 {
		t.Fatalf("want 3 connections of each, got %d and %d", len(sessions["a"]), len(sessions["b"]))
	}
	for _, c := range sessions["b"] {
		closeQuietly(c.Conn)
	}
	waitOpen(t, s, at, map[string]int{a.addr: 3, b.addr: 0})
	for range 3 {
		if c := open(t, at); c.name != "b" {
			t.Errorf("want b, which has fewer connections, got %s", c.name)
		}
	}
	// Other backends change nothing about open connections.
	c := newEcho(t, "c", "127.0.0.1:0")
	set(t, s, balanced(at, true, a.backend(1, 0), b.backend(1, 0), c.backend(1, 0)))
	for range 3 {
		if conn := open(t, at); conn.name != "c" {
			t.Errorf("want the new backend, got %s", conn.name)
		}
	}
	for _, c := range sessions["a"] {
		c.works(t)
	}
}

// waitOpen waits until the backends have numbers of open connections.
func waitOpen(t *testing.T, s *Server, addr netip.AddrPort, want map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err := retry.Until(ctx, time.Millisecond, func(context.Context) error {
		s.mu.Lock()
		p := s.listeners[addr].picker
		s.mu.Unlock()
		if diff := cmp.Diff(want, p.Open()); diff != "" {
			return errors.Errorf("open connections: -want, +got:\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusedShare verifies that the dialer checks the address of each backend.
func TestRefusedShare(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	s.opts.Control = address.Control
	a := newEcho(t, "a", "127.0.0.1:0")
	at := freeAddress(t)
	set(t, s, balanced(at, false, a.backend(1, 0)))
	conn := dial(t, at, someone)
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("want the end of the connection, got %q, %v", got, err)
	}
}

// newSite returns an HTTP backend that answers with its name, and with the body of the request. It ends
// each connection: a request on one that has just ended could not be sent again.
func newSite(t *testing.T, name string, served *atomic.Int32) *httptest.Server {
	t.Helper()
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", name, b)
	}))
	u.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(u.Close)
	return u
}

func siteBackend(u *httptest.Server, weight, priority int) balance.Backend {
	return balance.Backend{Address: u.Listener.Addr().String(), Weight: weight, Priority: priority, Health: probe.Healthy}
}

// clientOf returns a client whose requests use one connection, and the URL of a listener.
func clientOf(t *testing.T, addr netip.AddrPort) (*http.Client, string) {
	t.Helper()
	// The listener starts in a separate goroutine.
	closeQuietly(connect(t, addr))
	tr := &http.Transport{MaxConnsPerHost: 1, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
		if err != nil {
			return nil, err
		}
		_, err = headerOf(someone, addr).WriteTo(conn)
		return conn, err
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, "http://" + host + "/"
}

func post(t *testing.T, c *http.Client, url, body string) (int, string) {
	t.Helper()
	// A reader of an unknown type cannot be sent twice.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(res.Body)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestRequests balances the requests of one connection, and has a backend fail.
func TestRequests(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	var served [2]atomic.Int32
	a, b := newSite(t, "a", &served[0]), newSite(t, "b", &served[1])
	at := freeAddress(t)
	ha, hb := siteBackend(a, 3, 0), siteBackend(b, 1, 0)
	end := func(b ...balance.Backend) plan.Termination {
		out := balanced(at, false, b...)
		out.HTTP = true
		return out
	}
	set(t, s, end(ha, hb))
	c, url := clientOf(t, at)
	got := map[string]int{}
	for range 40 {
		_, answer := post(t, c, url, "body")
		got[answer]++
	}
	if diff := cmp.Diff(map[string]int{"a body": 30, "b body": 10}, got); diff != "" {
		t.Errorf("requests are balanced by weight. -want, +got:\n%s", diff)
	}
	waitOpen(t, s, at, map[string]int{ha.Address: 0, hb.Address: 0})

	// New requests, whose bodies cannot be sent twice, go to the other backend, before probes have
	// found out.
	b.Close()
	for range 8 {
		if code, answer := post(t, c, url, "body"); code != http.StatusOK || answer != "a body" {
			t.Errorf("want the answer of a, got %d %q", code, answer)
		}
	}

	a.Close()
	if code, _ := post(t, c, url, "body"); code != http.StatusBadGateway {
		t.Errorf("want the status 502 without a backend, got %d", code)
	}
	if n := served[0].Load() + served[1].Load(); n != 48 {
		t.Errorf("want each request once, in all 48, got %d", n)
	}
}

// call begins a gRPC call, and returns its response.
func call(t *testing.T, addr netip.AddrPort, body io.Reader) *http.Response {
	t.Helper()
	conn := dial(t, addr, someone)
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }, Protocols: &http.Protocols{}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(res.Body) })
	return res
}

// TestCall has a gRPC call, which begins before its client has sent anything, reach the second of two
// backends.
func TestCall(t *testing.T) {
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(w, r.Body)
	}))
	u.Config.Protocols = &http.Protocols{}
	u.Config.Protocols.SetUnencryptedHTTP2(true)
	u.Start()
	t.Cleanup(u.Close)
	s, _ := newServer(t, newCluster(), "")
	at := freeAddress(t)
	set(t, s, amongTwo(t, plan.Termination{Listen: at, HTTP: true, Backend: u.Listener.Addr().String()}))
	r, w := io.Pipe()
	defer closeQuietly(w)
	res := call(t, at, r)
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("want status 200 and HTTP/2, got %s %s", res.Proto, res.Status)
	}
	if _, err := io.WriteString(w, "message"); err != nil {
		t.Fatal(err)
	}
	closeQuietly(w)
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "message" {
		t.Errorf("want the message, got %q, %v", b, err)
	}
}

// TestSentRequest verifies that a request that a backend may have handled goes to no other.
func TestSentRequest(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	var cut, served atomic.Int32
	breaks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cut.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(breaks.Close)
	other := newSite(t, "other", &served)
	at := freeAddress(t)
	end := balanced(at, false, siteBackend(breaks, 1, 0), siteBackend(other, 1, 1))
	end.HTTP = true
	set(t, s, end)
	c, url := clientOf(t, at)
	if code, answer := post(t, c, url, "pay"); code != http.StatusBadGateway {
		t.Errorf("want the status 502, got %d %q", code, answer)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	closeQuietly(res.Body)
	if res.StatusCode != http.StatusBadGateway {
		t.Errorf("want the status 502 for a request without a body, got %d", res.StatusCode)
	}
	if cut.Load() != 2 || served.Load() != 0 {
		t.Errorf("want each request once, at the first backend; got %d and %d", cut.Load(), served.Load())
	}
}

// TestLeastRequests has requests under way at one backend.
func TestLeastRequests(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	names := make(chan string, 10)
	release := make(chan struct{})
	slow := func(name string) *httptest.Server {
		u := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			names <- name
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(u.Close)
		return u
	}
	a, b := siteBackend(slow("a"), 1, 0), siteBackend(slow("b"), 2, 0)
	at := freeAddress(t)
	end := balanced(at, true, a, b)
	end.HTTP = true
	set(t, s, end)
	var wg sync.WaitGroup
	got := map[string]int{}
	for range 6 {
		c, url := clientOf(t, at)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			res, err := c.Do(req)
			if err != nil {
				t.Errorf("cannot get an answer: %v", err)
				return
			}
			closeQuietly(res.Body)
		})
		got[<-names]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 4}, got); diff != "" {
		t.Errorf("requests under way are by weight. -want, +got:\n%s", diff)
	}
	close(release)
	wg.Wait()
	waitOpen(t, s, at, map[string]int{a.Address: 0, b.Address: 0})
}

// TestUpgradeIsOpen verifies that an upgraded connection counts until it ends.
func TestUpgradeIsOpen(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	u := httptest.NewServer(&witness{})
	t.Cleanup(u.Close)
	b := siteBackend(u, 1, 0)
	at := freeAddress(t)
	end := balanced(at, true, b)
	end.HTTP = true
	set(t, s, end)
	conn := dial(t, at, someone)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("want the status 101, got %v, %v", res, err)
	}
	if _, err := io.WriteString(conn, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.ReadString('\n'); err != nil || got != "ping\n" {
		t.Errorf("want ping, got %q, %v", got, err)
	}
	waitOpen(t, s, at, map[string]int{b.Address: 1})
	closeQuietly(conn)
	waitOpen(t, s, at, map[string]int{b.Address: 0})
}
