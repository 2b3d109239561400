// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package issue_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/envknob"
	_ "tailscale.com/feature/acme"
	"tailscale.com/tsnet"
	"tailscale.com/tstime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// patience bounds every wait of these tests.
const patience = 2 * time.Minute

// free returns a free address of loopback.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// selfSigned returns a certificate of 127.0.0.1 and its files.
func selfSigned(t *testing.T) (c tls.Certificate, cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "acme"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for path, b := range map[string][]byte{cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return c, cert, key
}

// A world has a simulated tailnet, and a real ACME server with limits.
type world struct {
	*simtest.Running
	t *testing.T
}

// newWorld starts Pebble behind the simulator's limits. Tailscaled in this process uses it.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Running: simtest.Start(t, simtest.AutoApprove), t: t}
	w.switches(func(sw *tailnetsim.Switches) { sw.CertDomains = tailnetsim.CertServed })
	on := true
	if err := w.Client(t).TailnetSettings().Update(t.Context(), tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &on}); err != nil {
		t.Fatalf("cannot turn on HTTPS: %v", err)
	}
	dns, err := w.StartDNS("127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot start DNS: %v", err)
	}
	root, err := apiserver.Root()
	if err != nil {
		t.Fatalf("cannot find the project's folder: %v", err)
	}
	pebble, err := apiserver.Program(t.Context(), root, "pebble", "TEST_ASSET_PEBBLE")
	if err != nil {
		t.Fatalf("cannot find Pebble: %v", err)
	}
	front, cert, key := selfSigned(t)
	at := free(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": at, "managementListenAddress": free(t), "certificate": cert, "privateKey": key, "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "as Let's Encrypt", "validityPeriod": 90 * 24 * 60 * 60}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := apiserver.StartProcess(apiserver.ProcessOptions{
		Env: []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_AUTHZREUSE=0", "PEBBLE_WFE_NONCEREJECT=0"}, Log: &bytes.Buffer{},
	}, pebble, "-config", file, "-dnsserver", dns.String())
	if err != nil {
		t.Fatalf("cannot start Pebble: %v", err)
	}
	t.Cleanup(func() { _ = p.Stop(time.Second) })
	acme, err := w.StartACME(tailnetsim.ACMEOptions{Listen: "127.0.0.1:0", Certificate: front, Directory: "https://" + at + "/dir"})
	if err != nil {
		t.Fatalf("cannot start the front of Pebble: %v", err)
	}
	trust(t, front)
	directory := "https://" + acme.String() + "/dir"
	err = p.Until(t.Context(), 50*time.Millisecond, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, directory, nil)
		if err != nil {
			return err
		}
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer rsp.Body.Close()
		if rsp.StatusCode != http.StatusOK {
			return errors.New(rsp.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Pebble does not answer: %v", err)
	}
	envknob.Setenv("TS_DEBUG_ACME_DIRECTORY_URL", directory)
	return w
}

// trust has this process's tailscaled trust the ACME server.
func trust(t *testing.T, c tls.Certificate) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	before := http.DefaultTransport
	transport := before.(*http.Transport).Clone() // The standard library's is one.
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	http.DefaultTransport = transport
	t.Cleanup(func() { http.DefaultTransport = before })
}

func (w *world) switches(f func(*tailnetsim.Switches)) {
	w.t.Helper()
	if err := w.SetSwitches(f); err != nil {
		w.t.Fatalf("SetSwitches(...): %v", err)
	}
}

// host joins a node that hosts services, and returns its LocalAPI and the services' names.
func (w *world) host(name string, services int) (*local.Client, []string) {
	w.t.Helper()
	n := w.NewNode(w.t, name, "tag:k8s")
	lc, err := n.LocalClient()
	if err != nil {
		w.t.Fatalf("cannot get a local client: %v", err)
	}
	var domains []string
	for i := range services {
		label := fmt.Sprintf("%s-%d", name, i)
		w.serve(n, label)
		domains = append(domains, label+"."+w.Domain())
	}
	simtest.Eventually(w.t, "the node has the names of its services", func() bool {
		granted, err := lc.CertDomains(w.t.Context())
		return err == nil && !slices.ContainsFunc(domains, func(d string) bool { return !slices.Contains(granted, d) })
	})
	return lc, domains
}

// serve creates a service, and has a node host it.
func (w *world) serve(n *tsnet.Server, label string) {
	w.t.Helper()
	err := w.Client(w.t).VIPServices().CreateOrUpdate(w.t.Context(), tailscale.VIPService{Name: "svc:" + label, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}})
	if err != nil {
		w.t.Fatalf("cannot create a service: %v", err)
	}
	l, err := n.ListenService("svc:"+label, tsnet.ServiceModeTCP{Port: 443})
	if err != nil {
		w.t.Fatalf("cannot host a service: %v", err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
}

// results counts the results of attempts.
type results struct {
	mu sync.Mutex
	n  map[issue.Result]int
}

func (r *results) add(of issue.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[issue.Result]int{}
	}
	r.n[of]++
}

func (r *results) count(of issue.Result) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[of]
}

// issuer requests certificates for names.
func issuer(t *testing.T, lc *local.Client, domains []string) (*issue.Issuer, *results) {
	t.Helper()
	r := &results{}
	i := issue.New(t.Context(), lc, issue.Options{Changed: func() {}, Attempted: r.add, Log: logging.NewNopLogger()})
	if err := i.Set(t.Context(), 1, domains); err != nil {
		t.Fatalf("Set(...): %v", err)
	}
	return i, r
}

// eventually waits longer than simtest.Eventually: an order takes seconds.
func eventually(t *testing.T, what string, ok func() bool, state func() any) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("timed out waiting: %s: %+v", what, state())
		}
	}
}

// TestLimits has real tailscaled ask a real ACME server with the limits of Let's Encrypt, only
// smaller.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	week := tstime.GoDuration{Duration: 7 * 24 * time.Hour}
	w.switches(func(sw *tailnetsim.Switches) {
		sw.TXTDelay = tstime.GoDuration{Duration: time.Second}
		sw.ACME.Certificates = tailnetsim.RateLimit{Count: 6, Window: week}
		sw.ACME.Accounts = tailnetsim.RateLimit{Count: 1, Window: tstime.GoDuration{Duration: 3 * time.Hour}}
	})
	lc, domains := w.host("first", 8)
	begin := time.Now()
	// The certificate authority counts a certificate once it has issued it.
	i, r := issuer(t, lc, domains[:6])
	statuses := func() any { return i.Statuses() }
	eventually(t, "6 certificates", func() bool { return r.count(issue.Issued) == 6 }, statuses)
	if err := i.Set(t.Context(), 1, domains); err != nil {
		t.Fatalf("Set(...): %v", err)
	}
	eventually(t, "6 certificates and 2 refusals", func() bool {
		return r.count(issue.Issued) == 6 && r.count(issue.Limited) == 2
	}, statuses)
	for name, st := range i.Statuses() {
		if st.Problem == "" {
			continue
		}
		if !strings.Contains(st.Problem, `too many certificates (6) already issued for "`+w.Domain()+`"`) {
			t.Errorf("%s: want the words of the limit, got %q", name, st.Problem)
		}
		if after := st.Until.Sub(begin); !st.Limited || after < 27*time.Hour || after > 28*time.Hour+patience {
			t.Errorf("%s: want a refusal until a sixth of a week later, got %+v", name, st)
		}
	}
	if n := r.count(issue.Failed); n != 0 {
		t.Errorf("want no other failure, got %d", n)
	}

	// Another machine has no account, and the address may have no second one.
	second, others := w.host("second", 1)
	j, s := issuer(t, second, others)
	eventually(t, "a refusal of the account", func() bool { return s.count(issue.Limited) == 1 }, func() any { return j.Statuses() })
	if st := j.Statuses()[others[0]]; !st.Limited || st.Until.IsZero() || !strings.Contains(st.Problem, "too many new registrations (1) from this IP address") {
		t.Errorf("want the refusal of the account, got %+v", st)
	}
}

// TestSameAccount has two machines with the same key ask an ACME server that allows one account.
func TestSameAccount(t *testing.T) {
	w := newWorld(t)
	w.switches(func(sw *tailnetsim.Switches) {
		sw.ACME.Accounts = tailnetsim.RateLimit{Count: 1, Window: tstime.GoDuration{Duration: 3 * time.Hour}}
	})
	key := account(t)
	for _, name := range []string{"first", "second"} {
		n := w.Node(t, name, w.NewKey(t, false, "tag:k8s").Key)
		dir := filepath.Join(n.Dir, "certs")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "acme-account.key.pem"), key, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), simtest.Timeout)
		defer cancel()
		if _, err := n.Up(ctx); err != nil {
			t.Fatalf("node %q cannot join: %v", name, err)
		}
		lc, err := n.LocalClient()
		if err != nil {
			t.Fatalf("cannot get a local client: %v", err)
		}
		i, r := issuer(t, lc, []string{name + "." + w.Domain()})
		eventually(t, "a certificate of "+name, func() bool { return r.count(issue.Issued) == 1 }, func() any { return i.Statuses() })
	}
}

// account returns a key as the provider makes it.
func account(t *testing.T) []byte {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
