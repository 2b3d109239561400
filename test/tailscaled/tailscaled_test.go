// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package tailscaled runs the agent's watch of tailscaled with the real programs of the oldest, the
// default and the newest tested version, which join a simulated tailnet.
package tailscaled

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"tailscale.com/client/local"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	service = "svc:web"
	tag     = "tag:k8s"

	// tailnetDomain is the simulator's default.
	tailnetDomain = "tail1234.ts.net"

	// limit bounds each wait. Old versions report netmaps every three seconds.
	limit = time.Minute
)

// versions returns the programs by version. TEST_ASSET_TAILSCALED_MORE names further ones, as
// VERSION=PATH, separated by commas.
func versions(t *testing.T) map[string]string {
	t.Helper()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatalf("cannot find the project's folder: %v", err)
	}
	_, pinned, _ := strings.Cut(products.Tailscale, ":v")
	out := map[string]string{}
	for version, program := range map[string]string{
		tailscaled.Oldest: "tailscaled-" + minor(tailscaled.Oldest),
		pinned:            "tailscaled",
		tailscaled.Newest: "tailscaled-" + minor(tailscaled.Newest),
	} {
		env := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper("test_asset_" + program))
		if out[version], err = apiserver.Program(t.Context(), root, program, env); err != nil {
			t.Fatalf("cannot find tailscaled %s: %v", version, err)
		}
	}
	for _, more := range strings.FieldsFunc(os.Getenv("TEST_ASSET_TAILSCALED_MORE"), func(r rune) bool { return r == ',' }) {
		version, path, _ := strings.Cut(more, "=")
		out[version] = path
	}
	return out
}

func minor(version string) string { return version[:strings.LastIndexByte(version, '.')] }

// TestVersions has a proxy of each version host a service, and use a peer.
func TestVersions(t *testing.T) {
	t.Parallel()
	for version, program := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			testVersion(t, version, program)
		})
	}
}

func testVersion(t *testing.T, version, program string) {
	t.Helper()
	sim := simtest.Start(t, simtest.AutoApprove)
	api := sim.Client(t)
	setHTTPS(t, api, true)
	if err := api.VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: service, Ports: []string{"tcp:80", "tcp:443"}, Tags: []string{tag}}); err != nil {
		t.Fatalf("cannot create the service: %v", err)
	}
	vip := addressOf(t, api)

	n := start(t, sim, program, "proxy", sim.NewKey(t, false, tag).Key)
	n.eventually("tailscaled runs, and its version is known", func(s localapi.State) bool {
		release, ok := tailscaled.Release(s.Version)
		return s.Running && ok && release == version && !s.Polled && len(s.Addresses) == 2
	})
	n.eventually("a service that is not advertised is known not to be accepted", func(s localapi.State) bool { return s.AcceptedKnown && !s.Accepted[service] })
	n.eventually("HTTPS is on, with the name of the machine", func(s localapi.State) bool {
		return s.HTTPS && s.HTTPSKnown && slices.Contains(s.CertDomains, "proxy."+tailnetDomain)
	})

	// Ingress. The certificate is requested as soon as control grants its name, and not before.
	domain := "web." + tailnetDomain
	if err := n.issuer.Set(t.Context(), 1, []string{domain}); err != nil {
		t.Fatalf("cannot want a certificate: %v", err)
	}
	if s := n.issuer.Statuses()[domain]; s.Requested || s.Problem != "" {
		t.Errorf("the certificate is requested before its name is granted: %+v", s)
	}
	received := n.serve(t)
	n.advertise(t, service)
	n.eventually("control accepts the machine as a host", func(s localapi.State) bool { return s.Accepted[service] && slices.Contains(s.CertDomains, domain) })
	n.eventually("the certificate is requested", func(localapi.State) bool { return n.issuer.Statuses()[domain].Requested })
	if p := n.issuer.Statuses()[domain].Problem; strings.Contains(p, "invalid domain") {
		t.Errorf("the certificate is requested before tailscaled knows its name: %s", p)
	}
	client := sim.NewNode(t, "client", tag)
	simtest.Eventually(t, "the client has a route to the service", func() bool { return simtest.Holder(t, client, vip) != "" })
	n.get(t, "the service", func(ctx context.Context) (net.Conn, error) {
		return client.Dial(ctx, "tcp", netip.AddrPortFrom(vip, 80).String())
	})
	if got, want := received.Load(), tailscaled.SendsClients(version); got != want {
		t.Errorf("TailscaledSendsClients(%q): want %t, got %t", version, got, want)
	}

	// Egress.
	l, err := client.Listen("tcp", ":8080")
	if err != nil {
		t.Fatalf("cannot listen on the peer: %v", err)
	}
	go answer(l)
	n.eventually("the peer is found by its name", func(localapi.State) bool { return n.peers.Find("client").Addr.IsValid() })
	addr := netip.AddrPortFrom(n.peers.Find("client").Addr, 8080)
	n.get(t, "the peer", func(ctx context.Context) (net.Conn, error) { return localapi.NewDialer(n.socket).Dial(ctx, addr) })
	if err := client.Close(); err != nil {
		t.Fatalf("cannot stop the peer: %v", err)
	}
	if err := api.Devices().Delete(t.Context(), deviceID(t, api, "client")); err != nil {
		t.Fatalf("cannot delete the peer: %v", err)
	}
	n.eventually("a deleted peer is not found any more", func(localapi.State) bool { return !n.peers.Find("client").Addr.IsValid() })

	// HTTPS is off only if the capability and the DNS config say so.
	if err := sim.SetSwitches(func(w *tailnetsim.Switches) { w.NoHTTPSCapability = true }); err != nil {
		t.Fatalf("cannot set switches: %v", err)
	}
	n.advertise(t)
	n.eventually("control takes the name of a withdrawn service back", func(s localapi.State) bool { return !slices.Contains(s.CertDomains, domain) })
	if s := n.last(); !s.HTTPS || !s.HTTPSKnown {
		t.Errorf("HTTPS must stay on while the DNS config has names: %+v", s)
	}
	setHTTPS(t, api, false)
	n.eventually("HTTPS is off", func(s localapi.State) bool { return !s.HTTPS && s.HTTPSKnown })
	setHTTPS(t, api, true)
	n.eventually("HTTPS is on without the capability", func(s localapi.State) bool { return s.HTTPS && s.HTTPSKnown })
	if s := n.last(); s.Session != 1 {
		t.Errorf("the watch was interrupted: session %d", s.Session)
	}
}

// A node is a tailscaled with the agent's watch of it.
type node struct {
	t      *testing.T
	config map[string]any
	path   string
	socket string
	local  *local.Client
	peers  *localapi.Peers
	issuer *issue.Issuer

	watcher *localapi.Watcher

	mu    sync.Mutex
	state localapi.State
}

// start starts a tailscaled as proxies do, and watches it.
func start(t *testing.T, sim *simtest.Running, program, hostname, authKey string) *node {
	t.Helper()
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "tsd-")
	if err != nil {
		t.Fatalf("cannot create a folder: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &node{
		t: t, path: filepath.Join(dir, "config.json"), socket: filepath.Join(dir, "sock"), peers: localapi.NewPeers(),
		config: map[string]any{
			"Version": "alpha0", "Locked": false, "ServerURL": sim.URL, "AuthKey": authKey, "Hostname": hostname,
			"acceptDNS": false, "acceptRoutes": true,
		},
	}
	n.local = &local.Client{Socket: n.socket, UseSocketOnly: true}
	n.write(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("cannot create a log: %v", err)
	}
	p, err := apiserver.StartProcess(apiserver.ProcessOptions{
		// The simulator is its only server, and no certificate authority answers.
		Env: []string{
			"TS_DISABLE_PORTMAPPER=1", "TS_ASSUME_NETWORK_UP_FOR_TEST=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1",
			"TS_DEBUG_ACME_DIRECTORY_URL=http://127.0.0.1:9/", "HOME=" + dir,
		},
		Log: log,
	}, program, "--config="+n.path, "--no-logs-no-support", "--port=0", "--socket="+n.socket, "--statedir="+dir, "--tun=userspace-networking")
	if err != nil {
		t.Fatalf("cannot start tailscaled: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := p.Stop(10 * time.Second); err != nil {
			t.Logf("tailscaled ended: %v", err)
		}
		_ = log.Close()
		if !t.Failed() {
			return
		}
		if b, err := os.ReadFile(log.Name()); err == nil {
			t.Logf("tailscaled's log:\n%s", b)
		}
	})
	c := localapi.NewClient(n.socket)
	n.issuer = issue.New(ctx, c, issue.Options{Changed: func() {}, Attempted: func(issue.Result) {}, Log: logging.NewNopLogger()})
	n.watcher = localapi.NewWatcher(c, logging.NewNopLogger(), func(s localapi.State) {
		n.mu.Lock()
		n.state = s
		n.mu.Unlock()
		n.issuer.Grant(s.CertDomains)
	}, localapi.WithPeers(n.peers))
	wg.Go(func() { n.watcher.Run(ctx) })
	return n
}

func (n *node) last() localapi.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// eventually waits for a state.
func (n *node) eventually(description string, ok func(localapi.State) bool) {
	n.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	began, end := time.Now(), time.After(limit)
	for !ok(n.last()) {
		select {
		case <-tick.C:
		case <-end:
			n.t.Fatalf("timed out waiting: %s\nlast state: %+v", description, n.last())
		}
	}
	n.t.Logf("%s after %s", description, time.Since(began).Round(time.Millisecond))
}

// write writes tailscaled's config.
func (n *node) write(t *testing.T) {
	t.Helper()
	b, err := json.Marshal(n.config)
	if err != nil {
		t.Fatalf("cannot encode tailscaled's config: %v", err)
	}
	if err := os.WriteFile(n.path, b, 0o600); err != nil {
		t.Fatalf("cannot write tailscaled's config: %v", err)
	}
}

// advertise has tailscaled advertise services, as the agent does.
func (n *node) advertise(t *testing.T, services ...string) {
	t.Helper()
	n.config["AdvertiseServices"] = append([]string{}, services...)
	n.write(t)
	n.watcher.Reload()
}

// serve has tailscaled forward the service's ports to a backend with the client's address, as
// containerboot does. The result says whether the address came.
func (n *node) serve(t *testing.T) *atomic.Bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	received := &atomic.Bool{}
	go answer(&proxyproto.Listener{Listener: l, ValidateHeader: func(*proxyproto.Header) error {
		received.Store(true)
		return nil
	}})
	handler := &ipn.TCPPortHandler{TCPForward: l.Addr().String(), ProxyProtocol: 2}
	if err := n.local.SetServeConfig(t.Context(), &ipn.ServeConfig{Services: map[tailcfg.ServiceName]*ipn.ServiceConfig{
		service: {TCP: map[uint16]*ipn.TCPPortHandler{80: handler, 443: handler}},
	}}); err != nil {
		t.Fatalf("cannot set the serve config: %v", err)
	}
	return received
}

// greeting is the response of backends and peers.
const greeting = "hello\n"

func answer(l net.Listener) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// A client that is gone gets nothing.
		_, _ = io.WriteString(w, greeting)
	})}
	// Serve returns when the listener is closed.
	_ = srv.Serve(l)
}

// get requests a greeting until it arrives.
func (n *node) get(t *testing.T, server string, dial func(context.Context) (net.Conn, error)) {
	t.Helper()
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
	n.eventually("an answer of "+server, func(localapi.State) bool {
		res, err := c.Get("http://target/")
		if err != nil {
			t.Logf("%s: %v", server, err)
			return false
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return err == nil && string(b) == greeting
	})
}

func setHTTPS(t *testing.T, api *tailscale.Client, enabled bool) {
	t.Helper()
	if err := api.TailnetSettings().Update(t.Context(), tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}); err != nil {
		t.Fatalf("cannot set HTTPS: %v", err)
	}
}

func addressOf(t *testing.T, api *tailscale.Client) netip.Addr {
	t.Helper()
	s, err := api.VIPServices().Get(t.Context(), service)
	if err != nil {
		t.Fatalf("cannot get the service: %v", err)
	}
	return netip.MustParseAddr(s.Addrs[0])
}

func deviceID(t *testing.T, api *tailscale.Client, hostname string) string {
	t.Helper()
	ds, err := api.Devices().List(t.Context())
	if err != nil {
		t.Fatalf("cannot list devices: %v", err)
	}
	for _, d := range ds {
		if d.Hostname == hostname {
			return d.ID
		}
	}
	t.Fatalf("cannot find device %q", hostname)
	return ""
}
