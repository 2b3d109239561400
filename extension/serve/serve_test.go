// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

const patience = time.Minute

// An authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem = a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	return a
}

func (a *authority) issue(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// write writes a certificate for a name in the form of a mounted Secret.
func (a *authority) write(dir, name string) tls.Certificate {
	a.t.Helper()
	return a.writeUntil(dir, name, time.Now().Add(time.Hour))
}

func (a *authority) writeUntil(dir, name string, end time.Time) tls.Certificate {
	a.t.Helper()
	_, key, crt := a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		NotAfter:    end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for file, b := range map[string][]byte{certFile: crt, keyFile: keyPEM, caFile: a.pem} {
		// The files change together: a key must not be read with another certificate.
		if err := os.WriteFile(filepath.Join(dir, "."+file), b, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	for _, file := range []string{certFile, keyFile, caFile} {
		if err := os.Rename(filepath.Join(dir, "."+file), filepath.Join(dir, file)); err != nil {
			a.t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(crt, keyPEM)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// start starts a server on loopback, and returns its address.
func start(t *testing.T, o Options) string {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewServer(o).Run(ctx, l, 0) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// check calls the health service over a separate connection.
func check(t *testing.T, address string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// TestTLS checks which clients a server answers. The servers of hooks and of endpoints are both
// configured in this way.
func TestTLS(t *testing.T) {
	const name = "extension-client"
	own, foreign := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	own.write(dir, "extension")
	roots := x509.NewCertPool()
	roots.AddCert(own.cert)
	shows := func(c ...tls.Certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "extension", Certificates: c})
	}

	cases := map[string]struct {
		reason string
		// anyClient disables client certificates.
		anyClient bool
		creds     credentials.TransportCredentials
		ok        bool
	}{
		"Client": {
			reason: "A client with a certificate for the name should be answered.",
			creds:  shows(own.write(t.TempDir(), name)),
			ok:     true,
		},
		"Anonymous": {
			reason: "A client without a certificate should be refused.",
			creds:  shows(),
		},
		"Stranger": {
			reason: "A certificate of another authority should be refused.",
			creds:  shows(foreign.write(t.TempDir(), name)),
		},
		"Expired": {
			reason: "An expired certificate should be refused.",
			creds:  shows(own.writeUntil(t.TempDir(), name, time.Now().Add(-time.Hour))),
		},
		"OtherName": {
			reason: "A certificate for another name should be refused, although the authority is right.",
			creds:  shows(own.write(t.TempDir(), "other-client")),
		},
		"NoTLS": {
			reason: "A client without TLS should be refused.",
			creds:  insecure.NewCredentials(),
		},
		"NoRoots": {
			reason: "A client that does not trust the authority should be refused.",
			creds:  credentials.NewTLS(&tls.Config{ServerName: "extension"}),
		},
		"Anybody": {
			reason:    "Without client certificates a client that trusts the authority should be answered.",
			anyClient: true,
			creds:     shows(),
			ok:        true,
		},
		"AnybodyNoTLS": {
			reason:    "A client without TLS should be refused, even without client certificates.",
			anyClient: true,
			creds:     insecure.NewCredentials(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := NewCertificate(dir)
			if err != nil {
				t.Fatal(err)
			}
			var clients *Clients
			if !tc.anyClient {
				if clients, err = ClientsOf(filepath.Join(dir, caFile), "extension-client"); err != nil {
					t.Fatal(err)
				}
			}
			err = check(t, start(t, Options{Credentials: Credentials(c.Get, clients)}), tc.creds)
			if (err == nil) != tc.ok {
				t.Errorf("\n%s\nwant an answer: %t, got %v", tc.reason, tc.ok, err)
			}
		})
	}
}

// TestLimits has a client send too much, and open too much.
func TestLimits(t *testing.T) {
	address := start(t, Options{Credentials: insecure.NewCredentials(), MaxStreams: 2, MaxConnections: 2 * share})
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	health := healthpb.NewHealthClient(conn)

	large := &healthpb.HealthCheckRequest{Service: strings.Repeat("a", maxMessage+1)}
	if _, err := health.Check(t.Context(), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than %d bytes: want %s, got %v", maxMessage, codes.ResourceExhausted, err)
	}

	for range 2 {
		s, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := health.Check(ctx, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call above the limit of concurrent calls should wait, got %v", err)
	}

	// The address may have two connections: a third is closed.
	if err := check(t, address, insecure.NewCredentials()); err != nil {
		t.Errorf("a second connection should be served: %v", err)
	}
	// The server may count the connection of check a little longer, and then closes the first.
	closed := make(chan error, 2)
	for range 2 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := io.ReadAll(c)
			closed <- err
		}()
	}
	if err := <-closed; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection above the limit of an address stays open")
	}
}

func TestReload(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	first.write(dir, "extension")
	c, err := NewCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	address := start(t, Options{Credentials: Credentials(c.Get, nil)})

	roots := x509.NewCertPool()
	roots.AddCert(second.cert)
	creds := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "extension"})
	if err := check(t, address, creds); err == nil {
		t.Fatal("the first certificate should not be of the second authority")
	}
	second.write(dir, "extension")
	deadline := time.Now().Add(2 * patience)
	for err := check(t, address, creds); err != nil; err = check(t, address, creds) {
		if time.Now().After(deadline) {
			t.Fatalf("a new certificate should be presented without a restart: %v", err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCertificateFails(t *testing.T) {
	dir := t.TempDir()
	newAuthority(t).write(dir, "server")
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCertificate(t.TempDir()); err == nil {
		t.Error("A folder without a certificate should be an error.")
	}
	for name, tc := range map[string]struct{ reason, file string }{
		"NoClientCA":    {reason: "A missing client authority should be an error.", file: filepath.Join(dir, "none")},
		"EmptyClientCA": {reason: "An empty one would refuse all clients, and should be an error.", file: empty},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ClientsOf(tc.file, ""); err == nil {
				t.Errorf("\n%s\nClientsOf(...): want an error", tc.reason)
			}
		})
	}
}

// TestPings has a client ping as often as Envoys do, without a call: the server must keep the
// connection.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 16)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		s := NewServer(Options{Credentials: insecure.NewCredentials()})
		go func() { done <- s.Run(ctx, l, 5*time.Second) }()

		dials := 0
		conn, err := grpc.NewClient("passthrough:///extension",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
			grpc.WithIdleTimeout(0),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				dials++
				return l.DialContext(ctx)
			}))
		if err != nil {
			t.Fatal(err)
		}
		health := healthpb.NewHealthClient(conn)
		if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if state := conn.GetState(); dials != 1 || state != connectivity.Ready {
			t.Errorf("after an hour of pings: %d connections, and the last is %s", dials, state)
		}

		// At shutdown health changes first, and calls are still answered.
		cancel()
		synctest.Wait()
		r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("at shutdown: want NOT_SERVING, got %s, %v", r.GetStatus(), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A killed process leaves its socket.
	stale, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	unix, ok := stale.(*net.UnixListener)
	if !ok {
		t.Fatalf("%T is no socket", stale)
	}
	unix.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason  string
		address string
		ok      bool
	}{
		"TCP":        {reason: "The server should listen on a port.", address: "127.0.0.1:0", ok: true},
		"LeftSocket": {reason: "The server should replace a socket that was left.", address: "unix:" + socket, ok: true},
		"File":       {reason: "The server should not touch a file that is no socket.", address: "unix:" + file},
		"NoFolder":   {reason: "A missing folder should be an error.", address: "unix:" + filepath.Join(dir, "none", "s")},
		"NoPort":     {reason: "An invalid address should be an error.", address: "nonsense"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(t.Context(), tc.address)
			if (err == nil) != tc.ok {
				t.Fatalf("\n%s\nListen(%q): want success: %t, got %v", tc.reason, tc.address, tc.ok, err)
			}
			if l == nil {
				return
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
