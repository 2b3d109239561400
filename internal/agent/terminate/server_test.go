// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"io"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pires/go-proxyproto"
	corev1 "k8s.io/api/core/v1"
	"tailscale.com/client/tailscale/apitype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// deadline bounds how long a test waits for an event.
const deadline = time.Minute

const host = "web.example.com"

// A cluster delivers Secrets to their watches.
type cluster struct {
	mu       sync.Mutex
	watchers map[string]func(*corev1.Secret)
	started  chan string
}

func newCluster() *cluster {
	return &cluster{watchers: map[string]func(*corev1.Secret){}, started: make(chan string, 100)}
}

func (c *cluster) watch(ctx context.Context, name string, fn func(*corev1.Secret)) {
	c.mu.Lock()
	c.watchers[name] = fn
	c.mu.Unlock()
	c.started <- name
	<-ctx.Done()
}

func (c *cluster) update(t *testing.T, name string, s *corev1.Secret) {
	t.Helper()
	// The Secret is delivered once it is watched.
	timeout := time.After(deadline)
	for {
		c.mu.Lock()
		fn := c.watchers[name]
		c.mu.Unlock()
		if fn != nil {
			fn(s)
			return
		}
		select {
		case <-c.started:
		case <-timeout:
			t.Fatalf("Secret %q is not watched", name)
		}
	}
}

// freeAddress returns a free address of the loopback interface.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(l)
	return netip.MustParseAddrPort(l.Addr().String())
}

// dial connects as tailscaled does for a client at an address: with a PROXY protocol header.
func dial(t *testing.T, addr netip.AddrPort, client string) net.Conn {
	t.Helper()
	conn := connect(t, addr)
	if _, err := headerOf(client, addr).WriteTo(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

// headerOf returns the header that tailscaled sends for a client.
func headerOf(client string, addr netip.AddrPort) *proxyproto.Header {
	return proxyproto.HeaderProxyFromAddrs(headerVersion, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client)), net.TCPAddrFromAddrPort(addr))
}

// connect connects as tailscaled does that sends no header.
func connect(t *testing.T, addr netip.AddrPort) net.Conn {
	t.Helper()
	timeout := time.Now().Add(deadline)
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr.String())
		if err == nil {
			t.Cleanup(func() { closeQuietly(conn) })
			return conn
		}
		// The listener starts in a separate goroutine.
		if time.Now().After(timeout) {
			t.Fatalf("cannot connect: %v", err)
		}
	}
}

const (
	headerVersion = 2
	someone       = "100.64.0.7:40000"
)

// backend returns the address of a TCP backend that answers each connection with pong. The
// channel receives what each connection has sent until it ended.
func backend(t *testing.T) (string, <-chan string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQuietly(l) })
	got := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer closeQuietly(c)
				b, err := io.ReadAll(c)
				if err != nil {
					return
				}
				got <- string(b)
				if _, err := io.WriteString(c, "pong"); err != nil {
					return
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

func newServer(t *testing.T, c *cluster, dir string) (*Server, <-chan struct{}) {
	t.Helper()
	changed := make(chan struct{}, 100)
	o := Options{
		Watch:   c.watch,
		WhoIs:   func(context.Context, string) (*apitype.WhoIsResponse, error) { return nil, errors.New("boom") },
		Changed: func() { changed <- struct{}{} },
		Log:     logging.NewNopLogger(),
	}
	if dir != "" {
		o.Store = atomicdir.New(filepath.Join(dir, "tls"), "tls.json")
	}
	return New(o), changed
}

func set(t *testing.T, s *Server, ts ...plan.Termination) {
	t.Helper()
	if err := s.Set(t.Context(), map[string][]plan.Termination{"svc:web": ts}); err != nil {
		t.Fatalf("Set(...): %v", err)
	}
}

func TestCarry(t *testing.T) {
	ca := newAuthority(t)
	cases := map[string]struct {
		reason    string
		version   int
		anonymous bool
		want      func(port string) string
	}{
		"Anonymous": {
			reason:    "A connection without a header is handed on as it is.",
			anonymous: true,
			want:      func(string) string { return "ping" },
		},
		"AnonymousV1": {
			reason:    "A backend that expects the header gets one that says that the client is unknown.",
			version:   1,
			anonymous: true,
			want:      func(string) string { return "PROXY UNKNOWN\r\nping" },
		},
		"AnonymousV2": {
			reason:    "So it does in version 2.",
			version:   2,
			anonymous: true,
			want:      func(string) string { return string(proxyproto.SIGV2) + "\x20\x00\x00\x00ping" },
		},
		"Plain": {
			reason: "A backend without the PROXY protocol gets no header.",
			want:   func(string) string { return "ping" },
		},
		"V1": {
			reason:  "The header of version 1 has the client's address in the tailnet, and the backend's port.",
			version: 1,
			want:    func(port string) string { return "PROXY TCP4 100.64.0.7 127.0.0.1 40000 " + port + "\r\nping" },
		},
		"V2": {
			reason:  "The header of version 2 is binary.",
			version: 2,
			want: func(port string) string {
				return string(proxyproto.SIGV2) + "\x21\x11\x00\x0c" + "\x64\x40\x00\x07" + "\x7f\x00\x00\x01" + "\x9c\x40" + port2(port) + "ping"
			},
		},
	}
	for name, tc := range cases {
		for carried, secret := range map[string]string{"TLS": "web-tls", "Bytes": "", "AmongTLS": "web-tls", "AmongBytes": ""} {
			t.Run(carried+"/"+name, func(t *testing.T) {
				c := newCluster()
				s, _ := newServer(t, c, "")
				backendAddr, got := backend(t)
				at := freeAddress(t)
				end := plan.Termination{Listen: at, Secret: secret, Backend: backendAddr, ProxyProtocol: tc.version, Anonymous: tc.anonymous}
				if strings.HasPrefix(carried, "Among") {
					end = amongTwo(t, end)
				}
				set(t, s, end)

				conn := connect(t, at)
				if !tc.anonymous {
					conn = dial(t, at, someone)
				}
				if secret != "" {
					c.update(t, secret, ca.secret(7))
					client, serial, err := ca.handshake(conn)
					if err != nil {
						t.Fatalf("handshake: %v", err)
					}
					if serial != 7 {
						t.Errorf("want the certificate 7, got %d", serial)
					}
					conn = client
				}
				if _, err := io.WriteString(conn, "ping"); err != nil {
					t.Fatal(err)
				}
				if err := endSending(conn); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil || string(answer) != "pong" {
					t.Errorf("want pong, got %q, %v", answer, err)
				}
				_, port, err := net.SplitHostPort(backendAddr)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want(port), <-got); diff != "" {
					t.Errorf("\n%s\nbackend: -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// endSending ends what a client sends, and not what it receives.
func endSending(conn net.Conn) error {
	c, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the connection cannot be closed in one direction")
	}
	return c.CloseWrite()
}

// TestCarryForged checks that a connection that tailscaled did not begin reaches no backend.
func TestCarryForged(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	backendAddr, got := backend(t)
	at := freeAddress(t)
	set(t, s, plan.Termination{Listen: at, Backend: backendAddr})
	conn := connect(t, at)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("want the connection closed, got %q", answer)
	}
	select {
	case b := <-got:
		t.Errorf("want nothing at the backend, got %q", b)
	default:
	}
}

// TestLinger checks that a listener outlasts the plan that it is in.
func TestLinger(t *testing.T) {
	s, _ := newServer(t, newCluster(), "")
	backendAddr, _ := backend(t)
	term := plan.Termination{Listen: freeAddress(t), Backend: backendAddr, Anonymous: true}
	set(t, s, term)
	connect(t, term.Listen)
	served := s.listeners[term.Listen]

	set(t, s)
	connect(t, term.Listen)
	set(t, s, term)
	if l := s.listeners[term.Listen]; l != served || l.leaving != nil {
		t.Error("A listener that is wanted again must stay")
	}

	set(t, s)
	s.leave(term.Listen, served)
	for timeout := time.Now().Add(deadline); ; {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", term.Listen.String())
		if err != nil {
			break
		}
		closeQuietly(conn)
		if time.Now().After(timeout) {
			t.Fatal("A listener that has left accepts connections")
		}
	}
	if len(s.listeners) > 0 {
		t.Errorf("listeners are left: %v", s.listeners)
	}
}

// port2 returns a port as two bytes.
func port2(port string) string {
	n, ok := new(big.Int).SetString(port, 10)
	if !ok {
		return ""
	}
	return string(n.FillBytes(make([]byte, 2)))
}

func TestReload(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	s, changed := newServer(t, c, "")
	backendAddr, _ := backend(t)
	at := freeAddress(t)
	set(t, s, plan.Termination{Listen: at, Secret: "web-tls", Backend: backendAddr})
	if got := s.Certificates(); len(got) != 0 {
		t.Errorf("A Secret that was not read must not be known, got %v", got)
	}
	good := ca.secret(1)
	mixed := ca.secret(3)
	mixed.Data[corev1.TLSPrivateKeyKey] = good.Data[corev1.TLSPrivateKeyKey]

	steps := []struct {
		reason string
		secret *corev1.Secret
		want   plan.Certificate
		serial int64
	}{
		{reason: "A missing Secret is reported.", want: plan.Certificate{Problem: "there is no such Secret"}},
		{reason: "A missing key is named.", secret: &corev1.Secret{}, want: plan.Certificate{Problem: "key tls.crt is missing or empty"}},
		{reason: "A good certificate is used.", secret: good, want: plan.Certificate{Usable: true}, serial: 1},
		{reason: "A renewed certificate is used at once.", secret: ca.secret(2), want: plan.Certificate{Usable: true}, serial: 2},
		{
			reason: "An invalid certificate does not replace a valid one.", secret: mixed, serial: 2,
			want: plan.Certificate{Usable: true, Problem: "key tls.key does not hold the private key, in PEM, of the certificate in tls.crt"},
		},
		{
			reason: "Invalid PEM is reported with its key.", serial: 2,
			secret: &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: []byte("garbage"), corev1.TLSPrivateKeyKey: []byte("secret garbage")}},
			want:   plan.Certificate{Usable: true, Problem: "key tls.crt does not begin with a certificate in PEM"},
		},
		{reason: "The certificate of a deleted Secret is not used any more.", want: plan.Certificate{Problem: "there is no such Secret"}},
		{reason: "The certificate of a Secret that was created again is used.", secret: ca.secret(4), want: plan.Certificate{Usable: true}, serial: 4},
	}
	for _, st := range steps {
		c.update(t, "web-tls", st.secret)
		select {
		case <-changed:
		default:
			t.Errorf("\n%s\nChanged was not called", st.reason)
		}
		if diff := cmp.Diff(map[plan.CertificateRef]plan.Certificate{{Secret: "web-tls"}: st.want}, known(t, s)); diff != "" {
			t.Errorf("\n%s\nCertificates(): -want, +got:\n%s", st.reason, diff)
		}
		if st.serial == 0 {
			continue
		}
		if _, serial, err := ca.handshake(dial(t, at, someone)); err != nil || serial != st.serial {
			t.Errorf("\n%s\nwant certificate %d, got %d, %v", st.reason, st.serial, serial, err)
		}
	}
}

func TestStrangers(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	s, _ := newServer(t, c, "")
	backendAddr, _ := backend(t)
	at := freeAddress(t)
	set(t, s, plan.Termination{Listen: at, Secret: "web-tls", Backend: backendAddr})

	if _, _, err := ca.handshake(dial(t, at, someone)); err == nil {
		t.Error("Without a certificate the connection must be refused")
	}
	c.update(t, "web-tls", ca.secret(1))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(conn)
	if _, _, err := ca.handshake(conn); err == nil {
		t.Error("A connection without a PROXY protocol header is not from tailscaled, and must be refused")
	}
}

func TestSet(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	s, _ := newServer(t, c, "")
	backendAddr, got := backend(t)
	first, second := freeAddress(t), freeAddress(t)
	set(t, s, plan.Termination{Listen: first, Secret: "web-tls", Backend: backendAddr})
	c.update(t, "web-tls", ca.secret(1))
	client, _, err := ca.handshake(dial(t, first, someone))
	if err != nil {
		t.Fatal(err)
	}

	set(t, s, plan.Termination{Listen: second, Secret: "web-tls", Backend: backendAddr})
	if _, _, err := ca.handshake(dial(t, second, someone)); err != nil {
		t.Errorf("A new port must have the certificate at once: %v", err)
	}
	if _, err := io.WriteString(client, "ping"); err != nil {
		t.Errorf("A connection must outlive its port: %v", err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b := <-got; b != "ping" {
		t.Errorf("A connection must outlive its port, got %q", b)
	}

	set(t, s)
	if got := s.Certificates(); len(got) != 0 {
		t.Errorf("A Secret that is no longer wanted must be forgotten, got %v", got)
	}
}
