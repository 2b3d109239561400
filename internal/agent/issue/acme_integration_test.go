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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"
	"tailscale.com/tstime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
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

	// directory of the ACME server, and the file of the certificate that its clients trust.
	directory, trusted string
}

// newWorld starts Pebble behind the simulator's limits. Tailscaled in this process uses it.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Running: simtest.Start(t, simtest.AutoApprove), t: t}
	w.switches(func(sw *tailnetsim.Switches) { sw.CertDomains = tailnetsim.CertServed })
	enabled := true
	if err := w.Client(t).TailnetSettings().Update(t.Context(), tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}); err != nil {
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
	pool := x509.NewCertPool()
	pool.AddCert(front.Leaf)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	w.directory, w.trusted = "https://"+acme.String()+"/dir", cert
	err = p.Until(t.Context(), 50*time.Millisecond, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.directory, nil)
		if err != nil {
			return err
		}
		rsp, err := client.Do(req)
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
	return w
}

func (w *world) switches(f func(*tailnetsim.Switches)) {
	w.t.Helper()
	if err := w.SetSwitches(f); err != nil {
		w.t.Fatalf("SetSwitches(...): %v", err)
	}
}

// host runs a real tailscaled that hosts services, with an account's key in its state, if there is
// one. It returns its LocalAPI as agents use it, and the services' names.
func (w *world) host(name string, services int, key []byte) (localapi.Client, []string) {
	w.t.Helper()
	root, err := apiserver.Root()
	if err != nil {
		w.t.Fatalf("cannot find the project's folder: %v", err)
	}
	program, err := apiserver.Program(w.t.Context(), root, "tailscaled", "TEST_ASSET_TAILSCALED")
	if err != nil {
		w.t.Fatalf("cannot find tailscaled: %v", err)
	}
	dir := w.t.TempDir()
	socket := filepath.Join(dir, "tailscaled.sock")
	if key != nil {
		if err := os.Mkdir(filepath.Join(dir, "certs"), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "certs", "acme-account.key.pem"), key, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	p, err := apiserver.StartProcess(apiserver.ProcessOptions{
		Env: []string{"TS_DEBUG_ACME_DIRECTORY_URL=" + w.directory, "SSL_CERT_FILE=" + w.trusted, "TS_NO_LOGS_NO_SUPPORT=true", "HOME=" + dir},
		Dir: dir,
	}, program, "--tun=userspace-networking", "--statedir="+dir, "--socket="+socket, "--port=0")
	if err != nil {
		w.t.Fatalf("cannot start tailscaled: %v", err)
	}
	w.t.Cleanup(func() { _ = p.Stop(time.Second) })
	lc := &local.Client{Socket: socket, UseSocketOnly: true}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	err = p.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		_, err := lc.StatusWithoutPeers(ctx)
		return err
	})
	if err != nil {
		w.t.Fatalf("tailscaled does not answer: %v", err)
	}
	up := exec.CommandContext(ctx, program, "--socket="+socket, "up", "--login-server="+w.URL, "--hostname="+name, "--auth-key="+w.NewKey(w.t, false, "tag:k8s").Key)
	up.Args[0] = "tailscale"
	if out, err := up.CombinedOutput(); err != nil {
		w.t.Fatalf("cannot join: %v: %s", err, out)
	}
	return localapi.NewClient(socket), w.serve(lc, name, services)
}

// serve creates services, and has a node host them.
func (w *world) serve(lc *local.Client, name string, services int) []string {
	w.t.Helper()
	prefs := &ipn.MaskedPrefs{AdvertiseServicesSet: true}
	sc := &ipn.ServeConfig{Services: map[tailcfg.ServiceName]*ipn.ServiceConfig{}}
	var domains []string
	for i := range services {
		svc := fmt.Sprintf("svc:web-%s-%d", name, i)
		err := w.Client(w.t).VIPServices().CreateOrUpdate(w.t.Context(), tailscale.VIPService{Name: svc, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}})
		if err != nil {
			w.t.Fatalf("cannot create a service: %v", err)
		}
		prefs.AdvertiseServices = append(prefs.AdvertiseServices, svc)
		sc.Services[tailcfg.ServiceName(svc)] = &ipn.ServiceConfig{TCP: map[uint16]*ipn.TCPPortHandler{443: {TCPForward: "127.0.0.1:9"}}}
		domains = append(domains, strings.TrimPrefix(svc, "svc:")+"."+w.Domain())
	}
	if err := lc.SetServeConfig(w.t.Context(), sc); err != nil {
		w.t.Fatalf("cannot set the serve config: %v", err)
	}
	if _, err := lc.EditPrefs(w.t.Context(), prefs); err != nil {
		w.t.Fatalf("cannot advertise: %v", err)
	}
	simtest.Eventually(w.t, "the node has the names of its services", func() bool {
		granted, err := lc.CertDomains(w.t.Context())
		return err == nil && !slices.ContainsFunc(domains, func(d string) bool { return !slices.Contains(granted, d) })
	})
	return domains
}

// results counts the results of attempts.
type results struct {
	mu sync.Mutex
	n  map[issue.Result]int
}

func (r *results) add(result issue.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[issue.Result]int{}
	}
	r.n[result]++
}

func (r *results) count(result issue.Result) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[result]
}

// issuer requests certificates for names, once control grants them.
func issuer(t *testing.T, lc localapi.Client, domains []string) (*issue.Issuer, *results) {
	t.Helper()
	r := &results{}
	i := issue.New(t.Context(), lc, issue.Options{Timeout: 20 * time.Second, Changed: func() {}, Attempted: r.add, Log: logging.NewNopLogger()})
	w := localapi.NewWatcher(lc, logging.NewNopLogger(), func(st localapi.State) { i.Grant(st.CertDomains) })
	wg := sync.WaitGroup{}
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	if err := i.Set(t.Context(), 1, domains); err != nil {
		t.Fatalf("Set(...): %v", err)
	}
	return i, r
}

// eventually waits longer than simtest.Eventually: an order takes seconds.
func eventually(t *testing.T, description string, ok func() bool, state func() any) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("timed out waiting: %s: %+v", description, state())
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
	lc, domains := w.host("first", 10, nil)
	begin := time.Now()
	// The certificate authority counts a certificate once it has issued it.
	i, r := issuer(t, lc, domains[:6])
	statuses := func() any { return i.Statuses() }
	eventually(t, "6 certificates", func() bool { return r.count(issue.Issued) == 6 }, statuses)
	if err := i.Set(t.Context(), 1, domains); err != nil {
		t.Fatalf("Set(...): %v", err)
	}
	eventually(t, "refusals of all others", func() bool {
		limited := 0
		for _, st := range i.Statuses() {
			if st.Limited {
				limited++
			}
		}
		return limited == len(domains)-6
	}, statuses)
	for name, st := range i.Statuses() {
		if st.Problem == "" {
			continue
		}
		if !strings.Contains(st.Problem, `too many certificates (6) already issued for "`+w.Domain()+`"`) {
			t.Errorf("%s: want the words of the limit, got %q", name, st.Problem)
		}
		if delay := st.LimitEnd.Sub(begin); delay < 27*time.Hour || delay > 28*time.Hour+patience {
			t.Errorf("%s: want a refusal until a sixth of a week later, got %+v", name, st)
		}
	}
	if n := r.count(issue.Failed); n != 0 {
		t.Errorf("want no other failure, got %d", n)
	}

	// Another machine has no account, and the address may have no second one.
	second, others := w.host("second", 1, nil)
	j, s := issuer(t, second, others)
	eventually(t, "a refusal of the account", func() bool { return s.count(issue.Limited) == 1 }, func() any { return j.Statuses() })
	if st := j.Statuses()[others[0]]; st.LimitEnd.IsZero() || !strings.Contains(st.Problem, "too many new registrations (1) from this IP address") {
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
		lc, domains := w.host(name, 1, key)
		i, r := issuer(t, lc, domains)
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
