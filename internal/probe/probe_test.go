// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver/resolvertest"
)

func TestNext(t *testing.T) {
	target := Target{Interval: 10 * time.Second, HealthyThreshold: 2, UnhealthyThreshold: 3}
	healthy := state{status: Status{Health: Healthy}, successes: 5}
	unhealthy := state{status: Status{Health: Unhealthy, Reason: "timed out"}, failures: 5}

	type want struct {
		status Status
		pause  time.Duration
	}
	cases := map[string]struct {
		reason  string
		initial state
		target  Target
		results []string
		want    want
	}{
		"FirstSuccess": {
			reason:  "One success is not enough, and the next probe follows soon.",
			target:  target,
			results: []string{""},
			want:    want{pause: pauseUnsettled},
		},
		"Healthy": {
			reason:  "After enough successes the interval is the target's.",
			target:  target,
			results: []string{"", ""},
			want:    want{status: Status{Health: Healthy}, pause: 10 * time.Second},
		},
		"FirstFailure": {
			reason:  "A healthy backend that fails once is soon probed again.",
			initial: healthy,
			target:  target,
			results: []string{"timed out"},
			want:    want{status: Status{Health: Healthy}, pause: pauseUnsettled},
		},
		"FailuresWithSuccess": {
			reason:  "Only failures in a row count.",
			initial: healthy,
			target:  target,
			results: []string{"timed out", "timed out", "", "timed out", "timed out"},
			want:    want{status: Status{Health: Healthy}, pause: pauseUnsettled},
		},
		"Unhealthy": {
			reason:  "After enough failures the backend is unhealthy, for the last reason.",
			initial: healthy,
			target:  target,
			results: []string{"timed out", "timed out", "connection refused"},
			want:    want{status: Status{Health: Unhealthy, Reason: "connection refused"}, pause: pauseUnhealthy},
		},
		"Recovering": {
			reason:  "An unhealthy backend that answers once is soon probed again.",
			initial: unhealthy,
			target:  target,
			results: []string{""},
			want:    want{status: Status{Health: Unhealthy, Reason: "timed out"}, pause: pauseUnsettled},
		},
		"ShortInterval": {
			reason:  "No pause is longer than the interval.",
			initial: unhealthy,
			target:  Target{Interval: 100 * time.Millisecond, UnhealthyThreshold: 1},
			results: []string{"timed out"},
			want:    want{status: Status{Health: Unhealthy, Reason: "timed out"}, pause: 100 * time.Millisecond},
		},
		"NoThreshold": {
			reason:  "A threshold of zero is one.",
			target:  Target{Interval: time.Second},
			results: []string{""},
			want:    want{status: Status{Health: Healthy}, pause: time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := tc.initial
			var got want
			for _, reason := range tc.results {
				r, got.pause = r.next(tc.target, netip.Addr{}, reason)
			}
			got.status = r.status
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nnext(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var dead atomic.Bool
		var mu sync.Mutex
		var changes []time.Duration
		start := time.Now()
		checker := CheckerFn(func(context.Context, Target) (netip.Addr, error) {
			if dead.Load() {
				return netip.Addr{}, syscall.ECONNREFUSED
			}
			return netip.Addr{}, nil
		})
		p := NewProber(checker, func() {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, time.Since(start))
		})
		target := Target{Host: "web", Port: 80, Interval: 10 * time.Second, Timeout: time.Second, HealthyThreshold: 2, UnhealthyThreshold: 3}
		p.Set(ctx, []Target{target, target})

		<-time.After(time.Minute)
		dead.Store(true)
		<-time.After(time.Minute)
		dead.Store(false)
		<-time.After(time.Minute)
		synctest.Wait()

		if diff := cmp.Diff(map[Target]Status{target: {Health: Healthy}}, p.Statuses(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("Statuses(): -want, +got:\n%s", diff)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(changes) != 3 {
			t.Fatalf("changed() was called %d times, want 3: %v", len(changes), changes)
		}
		if took := changes[1] - time.Minute; took > 12*time.Second {
			t.Errorf("A dead backend was found after %s, want 12s at most", took)
		}
		if took := changes[2] - 2*time.Minute; took > 3*time.Second {
			t.Errorf("A revived backend was found after %s, want 3s at most", took)
		}
	})
}

func TestProberSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var mu sync.Mutex
		probes := map[string]int{}
		p := NewProber(CheckerFn(func(_ context.Context, t Target) (netip.Addr, error) {
			mu.Lock()
			defer mu.Unlock()
			probes[t.Host]++
			return netip.Addr{}, nil
		}), func() {})
		a := Target{Host: "a", Interval: time.Second, Timeout: time.Second}
		b := Target{Host: "b", Interval: time.Second, Timeout: time.Second}

		p.Set(ctx, []Target{a, b})
		synctest.Wait()
		p.Set(ctx, []Target{b})
		<-time.After(10*time.Second + time.Millisecond)
		synctest.Wait()

		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 11}, probes); diff != "" {
			t.Errorf("A kept target must be probed further, a removed one must not: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[Target]Status{b: {Health: Healthy}}, p.Statuses(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("Statuses(): -want, +got:\n%s", diff)
		}
	})
}

func TestNetChecker(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
		case "/moved":
			http.Redirect(w, r, "/unhealthy", http.StatusFound)
		case "/hangs":
			<-r.Context().Done()
			// A reply that the client receives while it closes the connection is an answer.
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "unhealthy", http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	up := netip.MustParseAddrPort(srv.Listener.Addr().String())

	// A port below the range of ephemeral ports, which no other test can get.
	down := netip.MustParseAddrPort("127.0.0.1:1")

	cases := map[string]struct {
		reason  string
		addr    netip.AddrPort
		path    string
		resolve bool
		timeout time.Duration
		want    string
	}{
		"Connects":    {reason: "Without a path a connection is enough.", addr: up, want: ""},
		"Refused":     {reason: "A closed port is down.", addr: down, want: "connection refused"},
		"OK":          {reason: "2xx is up.", addr: up, path: "/ok", want: ""},
		"Redirect":    {reason: "3xx is up, and is not followed.", addr: up, path: "/moved", want: ""},
		"Unavailable": {reason: "5xx is down.", addr: up, path: "/unhealthy", want: "HTTP status 503"},
		"Hangs":       {reason: "A backend that takes too long is down.", addr: up, path: "/hangs", timeout: 50 * time.Millisecond, want: "timed out"},
		"ResolveOnly": {reason: "An address needs no lookup, and nothing is sent to it.", addr: down, path: "/ok", resolve: true, want: ""},
		"HTTPRefused": {reason: "A closed port is down for HTTP too.", addr: down, path: "/ok", want: "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeoutOr(tc.timeout))
			defer cancel()
			_, err := newNetChecker(&net.Dialer{Resolver: net.DefaultResolver}).Check(ctx, Target{Host: tc.addr.Addr().String(), Port: tc.addr.Port(), Path: tc.path, ResolveOnly: tc.resolve})
			if diff := cmp.Diff(tc.want, Reason(err)); diff != "" {
				t.Errorf("\n%s\nCheck(...): -want reason, +got reason:\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

// TestNetCheckerTLS gets a path by HTTPS, and verifies the certificate.
func TestNetCheckerTLS(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ok" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	srv, plain := httptest.NewUnstartedServer(h), httptest.NewServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	defer plain.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	cases := map[string]struct {
		reason string
		server *httptest.Server
		path   string
		tls    backendtls.Settings
		want   string
	}{
		"OK":          {reason: "A backend with a certificate for the name is up.", server: srv, path: "/ok", tls: backendtls.Settings{ServerName: "example.com", Authorities: ca}},
		"Unavailable": {reason: "5xx is down.", server: srv, path: "/", tls: backendtls.Settings{ServerName: "example.com", Authorities: ca}, want: "HTTP status 503"},
		"Name":        {reason: "A certificate for another name is down.", server: srv, path: "/ok", tls: backendtls.Settings{ServerName: "web.default.svc", Authorities: ca}, want: "its certificate is for another name"},
		"Authority":   {reason: "So is one of another authority.", server: srv, path: "/ok", tls: backendtls.Settings{ServerName: "example.com"}, want: "its certificate is not of a trusted authority"},
		"Plain":       {reason: "A backend without TLS is down.", server: plain, path: "/ok", tls: backendtls.Settings{ServerName: "example.com", Authorities: ca}, want: "it does not speak TLS"},
		"NoPath":      {reason: "Without a path a connection is enough.", server: plain, tls: backendtls.Settings{ServerName: "example.com", Authorities: ca}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeoutOr(0))
			defer cancel()
			at := netip.MustParseAddrPort(tc.server.Listener.Addr().String())
			_, err := newNetChecker(&net.Dialer{Resolver: net.DefaultResolver}).Check(ctx, Target{Host: at.Addr().String(), Port: at.Port(), Path: tc.path, TLS: tc.tls})
			if diff := cmp.Diff(tc.want, Reason(err)); diff != "" {
				t.Errorf("\n%s\nCheck(...): -want reason, +got reason:\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

// TestNetCheckerRefuses checks that servers in the pod itself are no backends, whatever name
// they have.
func TestNetCheckerRefuses(t *testing.T) {
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer srv.Close()
	at := netip.MustParseAddrPort(srv.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		for _, target := range []Target{{Path: "/"}, {}, {ResolveOnly: true}} {
			target.Host, target.Port = host, at.Port()
			_, err := NewNetChecker().Check(t.Context(), target)
			if got := Reason(err); !strings.HasPrefix(got, "its address is refused: it is ") {
				t.Errorf("%s, path %q, resolve only %v: want that it is refused, got %q (%v)", host, target.Path, target.ResolveOnly, got, err)
			}
		}
	}
	if requests > 0 {
		t.Errorf("A refused backend must not be probed, and was %d times", requests)
	}
}

func TestResolveOnly(t *testing.T) {
	_, err := newNetChecker(&net.Dialer{Resolver: resolvertest.Serve(t, nil)}).Check(t.Context(), Target{Host: "gone.default.svc.cluster.local.", Port: 80, ResolveOnly: true})
	if diff := cmp.Diff("no such host", Reason(err)); diff != "" {
		t.Errorf("A backend whose name does not exist is down: Check(...): -want reason, +got reason:\n%s\n%v", diff, err)
	}
}

// TestNames checks what a name's addresses mean: each is checked, and one alone is reported.
func TestNames(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	up := netip.MustParseAddrPort(srv.Listener.Addr().String())
	// 127.0.0.1 stands for a backend, and 127.0.0.9 for what is refused.
	control := func(_, addr string, _ syscall.RawConn) error {
		if a := netip.MustParseAddrPort(addr).Addr(); a == netip.MustParseAddr("127.0.0.9") {
			return address.RefusedError{Address: a, Reason: address.Loopback}
		}
		return nil
	}
	const refused = "its address is refused: it is a loopback address"
	cases := map[string]struct {
		reason string
		addrs  []string
		want   string
		err    string
	}{
		"One":         {reason: "A name's only address is reported.", addrs: []string{"127.0.0.1"}, want: "127.0.0.1"},
		"Several":     {reason: "None of several addresses is the name's.", addrs: []string{"127.0.0.1", "127.0.0.2"}},
		"Families":    {reason: "One of each family is like one: the one that answers.", addrs: []string{"2001:db8::1", "127.0.0.1"}, want: "127.0.0.1"},
		"Refused":     {reason: "A refused address is not dialed.", addrs: []string{"127.0.0.9"}, err: refused},
		"HiddenLast":  {reason: "Nor is a name that has one among others: connections could go there.", addrs: []string{"127.0.0.1", "127.0.0.9"}, err: refused},
		"HiddenFirst": {reason: "In either order.", addrs: []string{"127.0.0.9", "127.0.0.1"}, err: refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resolver := resolvertest.Serve(t, map[string][]string{"web.example.com.": tc.addrs})
			for _, target := range []Target{{}, {ResolveOnly: true}} {
				target.Host, target.Port = "web.example.com.", up.Port()
				got, err := newNetChecker(&net.Dialer{Resolver: resolver, Control: control}).Check(t.Context(), target)
				if Reason(err) != tc.err {
					t.Errorf("%s Check(%+v): want %q, got %v", tc.reason, target, tc.err, err)
				}
				var want netip.Addr
				if tc.want != "" {
					want = netip.MustParseAddr(tc.want)
				}
				if got != want && (!target.ResolveOnly || got.IsValid() != want.IsValid()) {
					t.Errorf("%s Check(%+v): want address %s, got %s", tc.reason, target, want, got)
				}
			}
		})
	}
}

// TestSearchList checks that the pod's search list does not complete a name to that of a Service of
// another namespace.
func TestSearchList(t *testing.T) {
	_, err := newNetChecker(&net.Dialer{Resolver: resolvertest.Serve(t, nil)}).Check(t.Context(), Target{Host: "web.shop", Port: 80})
	var dns *net.DNSError
	if !errors.As(err, &dns) || dns.Name != "web.shop." {
		t.Errorf("want a lookup of web.shop. that fails, got %v", err)
	}
}

// timeoutOr returns d, or a long timeout if d is zero.
func timeoutOr(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return 30 * time.Second
}

func TestReason(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"None":      {reason: "Without an error there is no reason."},
		"NoHost":    {reason: "A name that does not exist.", err: &net.DNSError{IsNotFound: true, Server: "10.0.0.10:53"}, want: "no such host"},
		"NoDNS":     {reason: "The reason must not contain the port of the query.", err: &net.DNSError{Err: "read udp 10.1.2.3:43522->10.96.0.10:53"}, want: "cannot resolve host"},
		"DNSTimer":  {reason: "A name server that is silent.", err: &net.DNSError{IsTimeout: true}, want: "timed out"},
		"Reset":     {reason: "A connection that is cut.", err: errors.Wrap(&net.OpError{Err: syscall.ECONNRESET}, "cannot get"), want: "connection closed"},
		"NoRoute":   {reason: "A host without a route.", err: &net.OpError{Err: syscall.EHOSTUNREACH}, want: "host unreachable"},
		"Expired":   {reason: "A certificate that is not valid any more.", err: &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, want: "its certificate is not valid"},
		"Something": {reason: "Anything else.", err: errors.New("read tcp 10.1.2.3:43522"), want: "cannot connect"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Reason(tc.err)); diff != "" {
				t.Errorf("\n%s\nReason(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
