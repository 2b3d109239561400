// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/ipn"
	"tailscale.com/tsnet"
	"tailscale.com/tstime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

const vipName = "svc:web"

// createService makes svc:web on port 80 and gives its IPv4 address.
func createService(t *testing.T, r *simtest.Running) netip.Addr {
	t.Helper()
	c := r.Client(t)
	if err := c.VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: vipName, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}); err != nil {
		t.Fatalf("cannot create the service: %v", err)
	}
	v, err := c.VIPServices().Get(t.Context(), vipName)
	if err != nil {
		t.Fatalf("cannot get the service: %v", err)
	}
	return netip.MustParseAddr(v.Addrs[0])
}

// host serves svc:web, answering with the node's hostname.
func host(t *testing.T, n *tsnet.Server) *tsnet.ServiceListener {
	t.Helper()
	ln, err := n.ListenService(vipName, tsnet.ServiceModeHTTP{Port: 80})
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	s := &http.Server{ReadHeaderTimeout: simtest.Timeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, n.Hostname); err != nil {
			t.Logf("cannot answer: %v", err)
		}
	})}
	go func() {
		if err := s.Serve(ln); err != nil {
			t.Logf("host %s stopped: %v", n.Hostname, err)
		}
	}()
	t.Cleanup(func() { _ = s.Close() }) // The listener may be closed already.
	return ln
}

// get requests url from the tailnet; vip is the address of its host, which some peer must have.
func get(t *testing.T, n *tsnet.Server, vip netip.Addr, url string) string {
	t.Helper()
	simtest.Eventually(t, "no peer has "+vip.String(), func() bool { return simtest.Holder(t, n, vip) != "" })
	ctx, cancel := context.WithTimeout(t.Context(), simtest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatalf("cannot make a request: %v", err)
	}
	hc := &http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
	res, err := hc.Do(req)
	if err != nil {
		t.Fatalf("cannot get %s: %v", url, err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("cannot read: %v", err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatalf("cannot close: %v", err)
	}
	return string(b)
}

// TestTaggedSelf checks that a tagged node sees itself as a user with its DNS name, as Tailscale's operator
// expects, also after it has another one.
func TestTaggedSelf(t *testing.T) {
	r := simtest.Start(t)
	n := r.NewNode(t, "machine", "tag:k8s")
	c, err := n.LocalClient()
	if err != nil {
		t.Fatal(err)
	}
	want := func(name string) {
		t.Helper()
		simtest.Eventually(t, "the node is the user "+name, func() bool {
			status, err := c.Status(t.Context())
			return err == nil && status.User[status.Self.UserID].LoginName == name
		})
	}
	want("machine.tail1234.ts.net")
	mustDo(t, r.Client(t).Devices().SetName(t.Context(), simtest.NodeID(t, n), "named"))
	want("named.tail1234.ts.net")
}

func TestServeFailOverWithdraw(t *testing.T) {
	r := simtest.Start(t, simtest.AutoApprove)
	vip := createService(t, r)
	a, b := r.NewNode(t, "host-a", "tag:k8s"), r.NewNode(t, "host-b", "tag:k8s")
	cl := r.NewNode(t, "client", "tag:k8s")

	host(t, a)
	simtest.Eventually(t, "a is primary", func() bool { return string(r.Primary(vipName)) == simtest.NodeID(t, a) })
	lnB := host(t, b)

	for _, url := range []string{"http://" + vip.String(), "http://web." + r.Domain()} {
		if diff := cmp.Diff("host-a", get(t, cl, vip, url)); diff != "" {
			t.Errorf("%s is served by the first host: -want, +got:\n%s", url, diff)
		}
	}
	simtest.Eventually(t, "both hosts are listed", func() bool { return len(r.State().Services[0].Hosts) == 2 })

	// The first host goes away: the second takes over soon.
	idB := simtest.NodeID(t, b)
	start := time.Now()
	if err := a.Close(); err != nil {
		t.Fatalf("cannot close host-a: %v", err)
	}
	simtest.Eventually(t, "b takes over", func() bool { return simtest.Holder(t, cl, vip) == idB })
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("failover took %s", d)
	}
	if diff := cmp.Diff("host-b", get(t, cl, vip, "http://"+vip.String())); diff != "" {
		t.Errorf("the second host serves: -want, +got:\n%s", diff)
	}

	// The second host withdraws: no host has the address any more.
	if err := lnB.Close(); err != nil {
		t.Fatalf("cannot close the listener: %v", err)
	}
	simtest.Eventually(t, "nobody has the address", func() bool { return simtest.Holder(t, cl, vip) == "" })
	simtest.Eventually(t, "the service has no host", func() bool { return len(r.State().Services[0].Hosts) == 0 })
}

func TestApproval(t *testing.T) {
	r := simtest.Start(t)
	vip := createService(t, r)
	n, cl := r.NewNode(t, "host", "tag:k8s"), r.NewNode(t, "client", "tag:k8s")
	id := simtest.NodeID(t, n)
	host(t, n)

	type hostView struct {
		NodeID        string `json:"nodeId"`
		ApprovalLevel string `json:"approvalLevel"`
		Configured    string `json:"configured"`
	}
	hosts := func() []hostView {
		var out struct {
			Hosts []hostView `json:"hosts"`
		}
		call(t, r, http.MethodGet, "/api/v2/tailnet/-/services/svc:web/devices", nil, &out)
		return out.Hosts
	}
	simtest.Eventually(t, "the host is ready", func() bool { return len(hosts()) == 1 && hosts()[0].Configured == "ready" })
	if diff := cmp.Diff([]hostView{{NodeID: id, ApprovalLevel: "not-approved", Configured: "ready"}}, hosts()); diff != "" {
		t.Errorf("before approval: -want, +got:\n%s", diff)
	}
	if p := r.Primary(vipName); p != "" {
		t.Errorf("an unapproved host is primary: %s", p)
	}
	if h := simtest.Holder(t, cl, vip); h != "" {
		t.Errorf("an unapproved host has the address: %s", h)
	}

	var got map[string]bool
	call(t, r, http.MethodPost, "/api/v2/tailnet/-/services/svc:web/device/"+id+"/approved", map[string]bool{"approved": true}, &got)
	if diff := cmp.Diff(map[string]bool{"approved": true, "autoApproved": false}, got); diff != "" {
		t.Errorf("approval: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("host", get(t, cl, vip, "http://"+vip.String())); diff != "" {
		t.Errorf("after approval: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("approved:manual", hosts()[0].ApprovalLevel); diff != "" {
		t.Errorf("after approval: -want, +got:\n%s", diff)
	}
}

func TestWrongPortIsNotConfigured(t *testing.T) {
	r := simtest.Start(t, simtest.AutoApprove)
	c := r.Client(t)
	if err := c.VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: vipName, Ports: []string{"tcp:80", "tcp:81"}, Tags: []string{"tag:k8s"}}); err != nil {
		t.Fatalf("cannot create the service: %v", err)
	}
	host(t, r.NewNode(t, "host", "tag:k8s"))
	simtest.Eventually(t, "the host is known to lack a port", func() bool {
		h := r.State().Services[0].Hosts
		return len(h) == 1 && h[0].Configured == "needs-configuration"
	})
	if p := r.Primary(vipName); p != "" {
		t.Errorf("a host that lacks a port is accepted: %s", p)
	}
}

func TestDeletedDeviceIsOut(t *testing.T) {
	r := simtest.Start(t)
	n := r.NewNode(t, "web", "tag:k8s")
	second := r.NewNode(t, "web", "tag:k8s")
	c := r.Client(t)
	d, err := c.Devices().Get(t.Context(), simtest.NodeID(t, second))
	if err != nil {
		t.Fatalf("cannot get the device: %v", err)
	}
	if diff := cmp.Diff("web-1."+r.Domain(), d.Name); diff != "" {
		t.Errorf("name: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tag:k8s"}, d.Tags); diff != "" {
		t.Errorf("tags: -want, +got:\n%s", diff)
	}
	if !d.KeyExpiryDisabled || !d.ConnectedToControl || d.LastSeen != nil {
		t.Errorf("device is not as a tagged, connected one is: %+v", d)
	}

	if err := c.Devices().Delete(t.Context(), simtest.NodeID(t, n)); err != nil {
		t.Fatalf("cannot delete the device: %v", err)
	}
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	simtest.Eventually(t, "the deleted node needs a login", func() bool {
		st, err := lc.StatusWithoutPeers(t.Context())
		return err == nil && st.BackendState == ipn.NeedsLogin.String()
	})
	lc2, err := second.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	simtest.Eventually(t, "the deleted node is no peer", func() bool {
		st, err := lc2.Status(t.Context())
		return err == nil && len(st.Peer) == 0
	})
}

// TestDeletedWhileAway deletes a node while it cannot hear of it.
func TestDeletedWhileAway(t *testing.T) {
	r := simtest.Start(t)
	n := r.NewNode(t, "node", "tag:k8s")
	id := simtest.NodeID(t, n)
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	state := func(want ipn.State) func() bool {
		return func() bool {
			st, err := lc.StatusWithoutPeers(t.Context())
			return err == nil && st.BackendState == want.String()
		}
	}
	if _, err := lc.EditPrefs(t.Context(), &ipn.MaskedPrefs{WantRunningSet: true}); err != nil {
		t.Fatalf("cannot stop: %v", err)
	}
	simtest.Eventually(t, "the node stops", state(ipn.Stopped))
	mustDo(t, r.Client(t).Devices().Delete(t.Context(), id))
	if _, err := lc.EditPrefs(t.Context(), &ipn.MaskedPrefs{Prefs: ipn.Prefs{WantRunning: true}, WantRunningSet: true}); err != nil {
		t.Fatalf("cannot start: %v", err)
	}
	simtest.Eventually(t, "the deleted node needs a login", state(ipn.NeedsLogin))
}

func TestWithoutKeyNeedsLogin(t *testing.T) {
	r := simtest.Start(t)
	n := r.Node(t, "stranger", "")
	if err := n.Start(); err != nil {
		t.Fatalf("cannot start: %v", err)
	}
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	simtest.Eventually(t, "the node receives a login URL", func() bool {
		st, err := lc.StatusWithoutPeers(t.Context())
		return err == nil && st.BackendState == ipn.NeedsLogin.String() && strings.HasPrefix(st.AuthURL, r.URL)
	})
	if got := len(r.State().Devices); got != 0 {
		t.Errorf("want no device, got %d", got)
	}
}

func TestSingleUseKey(t *testing.T) {
	r := simtest.Start(t)
	k := r.NewKey(t, false, "tag:k8s")
	first := r.Node(t, "first", k.Key)
	ctx, cancel := context.WithTimeout(t.Context(), simtest.Timeout)
	defer cancel()
	if _, err := first.Up(ctx); err != nil {
		t.Fatalf("the first use failed: %v", err)
	}
	_, err := r.Node(t, "second", k.Key).Up(ctx)
	if err == nil || !strings.Contains(err.Error(), "already used") {
		t.Errorf("the second use of a single-use key: %v", err)
	}
	if strings.Contains(err.Error(), k.Key) {
		t.Error("the error names the secret")
	}
	got, err := r.Client(t).Keys().Get(t.Context(), k.ID)
	if err != nil || !got.Invalid {
		t.Errorf("a used key is invalid: %+v, %v", got, err)
	}
	ks, err := r.Client(t).Keys().List(t.Context(), true)
	if err != nil || len(ks) != 0 {
		t.Errorf("a used key is not listed: %v, %v", ks, err)
	}
	if _, err := r.Node(t, "third", "tskey-auth-wrong").Up(ctx); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestEphemeralVanishes(t *testing.T) {
	r := simtest.Start(t)
	n := r.Node(t, "short", r.NewKey(t, true, "tag:k8s").Key)
	ctx, cancel := context.WithTimeout(t.Context(), simtest.Timeout)
	defer cancel()
	if _, err := n.Up(ctx); err != nil {
		t.Fatalf("cannot join: %v", err)
	}
	if got := len(r.State().Devices); got != 1 {
		t.Fatalf("want 1 device, got %d", got)
	}
	if err := n.Close(); err != nil {
		t.Fatalf("cannot close: %v", err)
	}
	simtest.Eventually(t, "the ephemeral node vanishes", func() bool { return len(r.State().Devices) == 0 })
}

func TestStateSurvivesRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	o := tailnetsim.Options{
		StateFile: file, Policy: tailnetsim.PolicyWithAutoApprover,
		Clients: []tailnetsim.OAuthClient{{ID: simtest.ClientID, Secret: simtest.ClientSecret, Scopes: []string{"all"}, Tags: []string{"tag:k8s-operator"}}},
	}
	r := simtest.Start(t) // Only for its isolation of nodes.
	s, err := tailnetsim.New(o)
	if err != nil {
		t.Fatalf("cannot make a simulator: %v", err)
	}
	if err := s.Start("127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Fatalf("cannot start: %v", err)
	}
	r.Server, r.URL = s, s.URL()
	addr, stun := strings.TrimPrefix(s.URL(), "http://"), s.STUNAddr().String()
	vip := createService(t, r)
	n, cl := r.NewNode(t, "host", "tag:k8s"), r.NewNode(t, "client", "tag:k8s")
	host(t, n)
	if diff := cmp.Diff("host", get(t, cl, vip, "http://"+vip.String())); diff != "" {
		t.Errorf("before the restart: -want, +got:\n%s", diff)
	}
	original := simtest.NodeID(t, n)
	if err := s.Close(); err != nil {
		t.Fatalf("cannot close: %v", err)
	}

	s2, err := tailnetsim.New(o)
	if err != nil {
		t.Fatalf("cannot make it again: %v", err)
	}
	if err := s2.Start(addr, stun); err != nil {
		t.Fatalf("cannot start again: %v", err)
	}
	t.Cleanup(func() {
		if err := s2.Close(); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	simtest.Eventually(t, "the host serves again", func() bool { return string(s2.Primary(vipName)) == original })
	if diff := cmp.Diff("host", get(t, cl, vip, "http://"+vip.String())); diff != "" {
		t.Errorf("after the restart: -want, +got:\n%s", diff)
	}
}

// call makes a raw API request with the API key.
func call(t *testing.T, r *simtest.Running, method, path string, input, out any) {
	t.Helper()
	body, err := json.Marshal(input)
	if err != nil {
		t.Fatalf("cannot encode: %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatalf("cannot make a request: %v", err)
	}
	req.SetBasicAuth(simtest.APIKey, "")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("cannot read: %v", err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatalf("cannot close: %v", err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatalf("cannot decode %q: %v", b, err)
	}
}

// TestDrain checks that a host that withdraws and keeps its serve configuration answers clients
// without a gap until control has moved them.
func TestDrain(t *testing.T) {
	const delay = 2 * time.Second
	r := simtest.Start(t, simtest.AutoApprove, func(o *tailnetsim.Options) {
		o.Switches.FailoverDelay = tstime.GoDuration{Duration: delay}
	})
	vip := createService(t, r)
	a, b := r.NewNode(t, "host-a", "tag:k8s"), r.NewNode(t, "host-b", "tag:k8s")
	cl := r.NewNode(t, "client", "tag:k8s")
	idA, idB := simtest.NodeID(t, a), simtest.NodeID(t, b)
	host(t, a)
	simtest.Eventually(t, "a is primary", func() bool { return string(r.Primary(vipName)) == idA })
	host(t, b)
	simtest.Eventually(t, "both hosts are listed", func() bool { return len(r.State().Services[0].Hosts) == 2 })
	get(t, cl, vip, "http://"+vip.String())

	ask := func(c *http.Client) error {
		res, err := c.Get("http://" + vip.String())
		if err != nil {
			return err
		}
		defer res.Body.Close() // Only read.
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	lc, err := a.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	if _, err := lc.EditPrefs(t.Context(), &ipn.MaskedPrefs{AdvertiseServicesSet: true}); err != nil {
		t.Fatalf("cannot withdraw: %v", err)
	}
	simtest.Eventually(t, "a is no host any more", func() bool { return len(r.State().Services[0].Hosts) == 1 })
	// As many new connections as a second has room for: a netstack remembers for a minute
	// the ports of those that it ended.
	paced := time.NewTicker(40 * time.Millisecond)
	defer paced.Stop()
	// A connection that is open while the client's packets move from one host to the other is
	// unknown to the other host, which resets it. Requests run one after another, so the
	// switch can cost at most one of them.
	reset := 0
	for began := time.Now(); time.Since(began) < delay || simtest.Holder(t, cl, vip) != idB; <-paced.C {
		fresh := &http.Client{Transport: &http.Transport{DialContext: cl.Dial}, Timeout: simtest.Timeout}
		err := ask(fresh)
		fresh.CloseIdleConnections()
		if err != nil && reset == 0 && simtest.Holder(t, cl, vip) == idB {
			reset++
			continue
		}
		if err != nil {
			t.Fatalf("no answer while a host drains: %v", err)
		}
	}
	if diff := cmp.Diff("host-b", get(t, cl, vip, "http://"+vip.String())); diff != "" {
		t.Errorf("the other host serves: -want, +got:\n%s", diff)
	}
}
