// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"
	"tailscale.com/tailcfg"
	"tailscale.com/tstime"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// puppets joins devices tagged tag:k8s with these node ids.
func puppets(t *testing.T, r *simtest.Running, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must[string](t)(r.Join(tailnetsim.Puppet{NodeID: id, Hostname: strings.ToLower(id), Tags: []string{"tag:k8s"}}))
	}
}

// web is the offer of a puppet that serves svc:web.
var web = tailnetsim.Offer{Service: vipName, Ports: []uint16{80}}

func set(t *testing.T, r *simtest.Running, change func(w *tailnetsim.Switches)) {
	t.Helper()
	mustDo(t, r.SetSwitches(change))
}

// TestClockOffset checks that replies have the time of a server whose clock is wrong.
func TestClockOffset(t *testing.T) {
	r := simtest.StartAPI(t, simtest.AutoApprove)
	for name, offset := range map[string]time.Duration{"Ahead": 5 * time.Minute, "Behind": -5 * time.Minute, "Right": 0} {
		t.Run(name, func(t *testing.T) {
			set(t, r, func(w *tailnetsim.Switches) { w.ClockOffset = tstime.GoDuration{Duration: offset} })
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/sim/state", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
			at, err := http.ParseTime(res.Header.Get("Date"))
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Until(at) - offset; d.Abs() > time.Minute {
				t.Errorf("with an offset of %s: the Date is off by %s more", offset, d)
			}
		})
	}
}

func TestFailoverDelay(t *testing.T) {
	r := simtest.StartAPI(t, simtest.AutoApprove)
	createService(t, r)
	puppets(t, r, "nA", "nB")
	for _, id := range []string{"nA", "nB"} {
		mustDo(t, r.SetOffers(id, web))
	}
	if p := r.Primary(vipName); p != "nA" {
		t.Fatalf("the first host is primary: got %q", p)
	}

	// As long as the delay runs, the host that withdrew keeps the addresses.
	set(t, r, func(w *tailnetsim.Switches) { w.FailoverDelay = tstime.GoDuration{Duration: time.Hour} })
	mustDo(t, r.SetOffers("nA"))
	if p := r.Primary(vipName); p != "nA" {
		t.Errorf("during the delay: want nA, got %q", p)
	}
	// It comes back in time, and nothing was lost.
	mustDo(t, r.SetOffers("nA", web))
	set(t, r, func(w *tailnetsim.Switches) { w.FailoverDelay = tstime.GoDuration{Duration: 50 * time.Millisecond} })
	if p := r.Primary(vipName); p != "nA" {
		t.Errorf("after it came back: want nA, got %q", p)
	}
	// It goes away for good.
	if !r.SetOnline("nA", false) {
		t.Fatal("there is no nA")
	}
	if p := r.Primary(vipName); p != "nA" {
		t.Errorf("just after it went away: want nA, got %q", p)
	}
	simtest.Eventually(t, "the other host has the addresses", func() bool { return r.Primary(vipName) == "nB" })
	// Without a delay they move at once.
	set(t, r, func(w *tailnetsim.Switches) { w.FailoverDelay = tstime.GoDuration{} })
	mustDo(t, r.SetOffers("nB"))
	if p := r.Primary(vipName); p != "" {
		t.Errorf("without a delay: want nobody, got %q", p)
	}
}

func TestApprovalNeedsAdvertise(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		needs  bool
		want   tailcfg.StableNodeID
	}{
		"AtOnce":     {reason: "An approval reaches a host that advertises.", want: "nA"},
		"Advertises": {reason: "With the switch it does not, until the host advertises again.", needs: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Switches.ApprovalNeedsAdvertise = tc.needs })
			createService(t, r)
			puppets(t, r, "nA")
			mustDo(t, r.SetOffers("nA", web))
			var got map[string]bool
			call(t, r, http.MethodPost, "/api/v2/tailnet/-/services/svc:web/device/nA/approved", map[string]bool{"approved": true}, &got)
			if diff := cmp.Diff(map[string]bool{"approved": true, "autoApproved": false}, got); diff != "" {
				t.Errorf("%s\nThe API says that it is approved in any case: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, r.Primary(vipName)); diff != "" {
				t.Errorf("%s\nPrimary(...): -want, +got:\n%s", tc.reason, diff)
			}
			mustDo(t, r.SetOffers("nA"))
			mustDo(t, r.SetOffers("nA", web))
			if p := r.Primary(vipName); p != "nA" {
				t.Errorf("%s\nPrimary(...) after it advertised again: %q", tc.reason, p)
			}
		})
	}
}

// TestPreApproval approves a device before it advertises.
func TestPreApproval(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Switches.ApprovalNeedsAdvertise = true })
	createService(t, r)
	puppets(t, r, "nA")
	call(t, r, http.MethodPost, "/api/v2/tailnet/-/services/svc:web/device/nA/approved", map[string]bool{"approved": true}, new(map[string]bool))
	mustDo(t, r.SetOffers("nA", web))
	if p := r.Primary(vipName); p != "nA" {
		t.Errorf("a host that was approved before is primary at once: got %q", p)
	}
}

// TestCertCondition checks with real nodes which certificate domains they receive.
func TestCertCondition(t *testing.T) {
	r := simtest.Start(t)
	createService(t, r)
	setHTTPS(t, r, true)
	n := r.NewNode(t, "host", "tag:k8s")
	id := simtest.NodeID(t, n)
	own, both := []string{"host." + r.Domain()}, []string{"host." + r.Domain(), "web." + r.Domain()}
	match := func(want []string) func() bool {
		return func() bool { return slices.Equal(certDomains(t, n), want) }
	}
	ln := host(t, n)
	simtest.Eventually(t, "the host is known", func() bool { return len(r.State().Services[0].Hosts) == 1 })
	simtest.Eventually(t, "an unapproved host has its own name only", match(own))
	call(t, r, http.MethodPost, "/api/v2/tailnet/-/services/svc:web/device/"+id+"/approved", map[string]bool{"approved": true}, new(map[string]bool))
	simtest.Eventually(t, "an approved host that advertises has the service's", match(both))
	mustDo(t, ln.Close())
	simtest.Eventually(t, "a host that advertises no more loses it", match(own))

	// A puppet has no certificates, but the same condition applies to their requests.
	mustDo(t, r.SetOffers(id, tailnetsim.Offer{Service: vipName, Ports: []uint16{80}, Withdrawn: true}))
	set(t, r, func(w *tailnetsim.Switches) { w.CertDomains = tailnetsim.CertServed })
	simtest.Eventually(t, "with the other condition serving is enough", match(both))
	set(t, r, func(w *tailnetsim.Switches) { w.CertDomains = tailnetsim.CertAdvertised })
	simtest.Eventually(t, "and with the first it is not", match(own))
}

func TestSwitchRoutes(t *testing.T) {
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Switches.ServiceQuota = 3 })
	var got tailnetsim.Switches
	call(t, r, http.MethodPatch, "/sim/switches", map[string]any{"failoverDelay": "15s"}, &got)
	if got.FailoverDelay.Duration != 15*time.Second || got.ServiceQuota != 3 {
		t.Errorf("PATCH keeps what it does not name: %+v", got)
	}
	call(t, r, http.MethodPut, "/sim/switches", map[string]any{"plan": map[string]int{"log-streaming": 402}}, &got)
	want := tailnetsim.Switches{
		Plan: map[tailnetsim.Feature]int{tailnetsim.LogStreaming: 402}, CertDomains: tailnetsim.CertAdvertised,
		HostStates:       tailnetsim.HostStates{Ready: "ready", Partial: "needs-configuration", Approved: "needs-configuration", Unknown: "pending"},
		RevokedKeyStatus: http.StatusNotFound,
		ACME: tailnetsim.ACMELimits{
			Certificates: tailnetsim.RateLimit{Count: 50, Window: tstime.GoDuration{Duration: 7 * 24 * time.Hour}},
			PerName:      tailnetsim.RateLimit{Count: 5, Window: tstime.GoDuration{Duration: 7 * 24 * time.Hour}},
			Accounts:     tailnetsim.RateLimit{Count: 10, Window: tstime.GoDuration{Duration: 3 * time.Hour}},
		},
	}
	if diff := cmp.Diff(want, r.Switches()); diff != "" {
		t.Errorf("PUT replaces all: -want, +got:\n%s", diff)
	}

	for name, body := range map[string]string{
		"Unknown":   `{"nonsense": true}`,
		"Feature":   `{"plan": {"everything": 403}}`,
		"Status":    `{"plan": {"log-streaming": 500}}`,
		"Condition": `{"certDomains": "never"}`,
		"Fresh":     `{"freshClient": {"status": 500}}`,
		"Revoked":   `{"revokedKeyStatus": 200}`,
	} {
		t.Run(name, func(t *testing.T) {
			req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPatch, r.URL+"/sim/switches", strings.NewReader(body)))
			var msg map[string]string
			decode(t, req, http.StatusBadRequest, &msg)
			if diff := cmp.Diff(want, r.Switches()); diff != "" {
				t.Errorf("a refused change changes nothing: -want, +got:\n%s", diff)
			}
		})
	}

	// A policy that names a group of the directory would be wrong without it.
	set(t, r, func(w *tailnetsim.Switches) { w.UnsyncedGroups = []string{"group:a"} })
	mustDo(t, r.Client(t).PolicyFile().Set(t.Context(), `{"grants": [{"src": ["group:a"], "dst": ["*"], "ip": ["*"]}]}`, ""))
	if err := r.SetSwitches(func(w *tailnetsim.Switches) { w.UnsyncedGroups = nil }); err == nil {
		t.Error("a group that the policy file names cannot vanish")
	}
	if _, err := tailnetsim.New(tailnetsim.Options{Switches: tailnetsim.Switches{CertDomains: "never"}}); err == nil {
		t.Error("New takes wrong switches")
	}
}

func TestPuppetRoutes(t *testing.T) {
	r := simtest.StartAPI(t, simtest.AutoApprove)
	createService(t, r)
	puppets(t, r, "nA")
	var offers []tailnetsim.Offer
	call(t, r, http.MethodPut, "/sim/devices/nA/offers", []tailnetsim.Offer{web}, &offers)
	if p := r.Primary(vipName); p != "nA" {
		t.Errorf("a puppet that serves is primary: %q", p)
	}
	var facts tailnetsim.DeviceFacts
	call(t, r, http.MethodPut, "/sim/devices/nA/facts", tailnetsim.DeviceFacts{MultipleConnections: true}, &facts)
	if got := r.State().Devices[0]["multipleConnections"]; got != true {
		t.Errorf("multiple connections: %v", got)
	}
	var edit tailnetsim.ServiceEdit
	call(t, r, http.MethodPost, "/sim/services/svc:web/edit", tailnetsim.ServiceEdit{Ports: []string{"tcp:81"}}, &edit)
	if diff := cmp.Diff([]string{"tcp:81"}, must[*tailscale.VIPService](t)(r.Client(t).VIPServices().Get(t.Context(), vipName)).Ports); diff != "" {
		t.Errorf("ports: -want, +got:\n%s", diff)
	}
	for path, status := range map[string]int{"/sim/devices/nNone/offers": http.StatusNotFound, "/sim/devices/nNone/facts": http.StatusNotFound} {
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPut, r.URL+path, strings.NewReader("null")))
		var msg map[string]string
		decode(t, req, status, &msg)
	}
	if err := r.EditService("svc:none", tailnetsim.ServiceEdit{}); err == nil {
		t.Error("a service that is not there was edited")
	}
}

func TestLag(t *testing.T) {
	hour, none := tstime.GoDuration{Duration: time.Hour}, tstime.GoDuration{}

	t.Run("API", func(t *testing.T) {
		r := simtest.StartAPI(t)
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.API = hour })
		c := r.Client(t)
		if n := len(must[[]tailscale.Device](t)(c.Devices().List(t.Context()))); n != 0 {
			t.Fatalf("devices: %d", n)
		}
		puppets(t, r, "nA")
		if n := len(must[[]tailscale.Device](t)(c.Devices().List(t.Context()))); n != 0 {
			t.Errorf("an old reply has the new device: %d", n)
		}
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.API = none })
		if n := len(must[[]tailscale.Device](t)(c.Devices().List(t.Context()))); n != 1 {
			t.Errorf("without a lag, a reply has the new device: %d", n)
		}
	})

	t.Run("Control", func(t *testing.T) {
		r := simtest.StartAPI(t, simtest.AutoApprove)
		createService(t, r)
		puppets(t, r, "nA")
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.Control = hour })
		mustDo(t, r.SetOffers("nA", web))
		if h := r.State().Services[0].Hosts; len(h) != 1 || h[0].Configured != "ready" {
			t.Errorf("the API shows the host at once: %+v", h)
		}
		if p := r.Primary(vipName); p != "" {
			t.Errorf("control has not decided yet: %q is primary", p)
		}
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.Control = tstime.GoDuration{Duration: time.Millisecond} })
		simtest.Eventually(t, "control decides", func() bool { return r.Primary(vipName) == "nA" })
	})

	t.Run("NetMap", func(t *testing.T) {
		r := simtest.Start(t, simtest.AutoApprove)
		vip := createService(t, r)
		cl := r.NewNode(t, "client", "tag:k8s")
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.NetMap = hour })
		puppets(t, r, "nA")
		mustDo(t, r.SetOffers("nA", web))
		if p := r.Primary(vipName); p != "nA" {
			t.Errorf("control decides at once: %q is primary", p)
		}
		if h := simtest.Holder(t, cl, vip); h != "" {
			t.Errorf("the client has the route already: %q", h)
		}
		set(t, r, func(w *tailnetsim.Switches) { w.Lag.NetMap = none })
		simtest.Eventually(t, "the client has the route", func() bool { return simtest.Holder(t, cl, vip) == "nA" })
	})
}

func TestTaggedResources(t *testing.T) {
	r := simtest.StartAPI(t)
	puppets(t, r, "nA")
	set(t, r, func(w *tailnetsim.Switches) { w.TaggedResources = 1 })
	k := r.NewKey(t, false, "tag:k8s")
	join := func() error {
		_, err := r.Join(tailnetsim.Puppet{NodeID: "nB", Hostname: "b", AuthKey: k.Key})
		return err
	}
	if err := join(); err == nil || !strings.Contains(err.Error(), "tagged resources") {
		t.Errorf("a device beyond the plan is refused: %v", err)
	}
	mustDo(t, r.Client(t).Devices().Delete(t.Context(), "nA"))
	if err := join(); err != nil {
		t.Errorf("when there is room again, the same key works: %v", err)
	}
}

// TestTaggedResourcesOfTailscaled tests that tailscaled reports the refusal in its health, where
// containerboot and the agent see it.
func TestTaggedResourcesOfTailscaled(t *testing.T) {
	r := simtest.Start(t)
	puppets(t, r, "nA")
	set(t, r, func(w *tailnetsim.Switches) { w.TaggedResources = 1 })
	n := r.Node(t, "late", r.NewKey(t, false, "tag:k8s").Key)
	mustDo(t, n.Start())
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	simtest.Eventually(t, "the health has control's words", func() bool {
		st, err := lc.StatusWithoutPeers(t.Context())
		return err == nil && slices.ContainsFunc(st.Health, func(h string) bool { return strings.Contains(h, "tagged resources") })
	})
}
