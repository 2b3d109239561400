// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"
	"tailscale.com/kube/kubetypes"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestLoginRecordNext(t *testing.T) {
	ago := func(d time.Duration) time.Time { return testTime.Add(-d) }
	start := ago(time.Hour)
	cases := map[string]struct {
		reason    string
		existing  loginRecord
		asks      bool
		connected bool
		other     bool
		want      loginRecord
		step      loginStep
	}{
		"AtRest": {
			reason:    "A node that is logged in needs nothing.",
			connected: true,
		},
		"First": {
			reason:   "A first request begins to count, and remembers the last login for other machines.",
			existing: loginRecord{LoggedIn: start},
			asks:     true,
			want:     loginRecord{FirstRequest: testTime, LastRequest: testTime, LoggedIn: start},
		},
		"StillListedAsConnected": {
			reason:    "The API may show the device as connected for a while: the node is not back.",
			existing:  loginRecord{FirstRequest: ago(20 * time.Second), LastRequest: ago(20 * time.Second)},
			connected: true,
			want:      loginRecord{FirstRequest: ago(20 * time.Second), LastRequest: ago(20 * time.Second)},
		},
		"TooSoon": {
			reason:   "A restart waits.",
			existing: loginRecord{FirstRequest: start, LastRequest: ago(59 * time.Second), Restarts: 1},
			want:     loginRecord{FirstRequest: start, LastRequest: ago(59 * time.Second), Restarts: 1},
		},
		"Second": {
			reason:   "The second restart comes after a minute.",
			existing: loginRecord{FirstRequest: start, LastRequest: ago(time.Minute), Restarts: 1},
			want:     loginRecord{FirstRequest: start, Restarts: 2, Restarted: testTime},
			step:     stepRestart,
		},
		"Fifth": {
			reason:   "Later restarts have the last delay, while no other machine logs in.",
			existing: loginRecord{FirstRequest: start, LastRequest: ago(30 * time.Minute), Restarts: 4},
			want:     loginRecord{FirstRequest: start, Restarts: 5, Restarted: testTime},
			step:     stepRestart,
		},
		"Future": {
			reason:   "A time in the future comes from another clock, and does not delay a restart.",
			existing: loginRecord{FirstRequest: start, LastRequest: ago(-time.Hour)},
			want:     loginRecord{FirstRequest: start, Restarts: 1, Restarted: testTime},
			step:     stepRestart,
		},
		"AskedAgain": {
			reason:   "A request after a restart begins the next delay.",
			existing: loginRecord{FirstRequest: start, Restarts: 1, Restarted: ago(time.Minute)},
			asks:     true,
			want:     loginRecord{FirstRequest: start, LastRequest: testTime, Restarts: 1, Restarted: ago(time.Minute)},
		},
		"LoggedIn": {
			reason:    "A node that is back after a restart starts again.",
			existing:  loginRecord{FirstRequest: start, Restarts: 3, Restarted: ago(time.Second)},
			connected: true,
			want:      loginRecord{LoggedIn: testTime},
		},
		"LoggedInByItself": {
			reason:    "Containerboot exits after ten minutes, and may log in then, before the next restart is due.",
			existing:  loginRecord{FirstRequest: start, LastRequest: ago(11 * time.Minute), Restarts: 3},
			connected: true,
			want:      loginRecord{LoggedIn: testTime},
		},
		"NotExhausted": {
			reason:   "Before the fourth restart, no key is issued although others log in.",
			existing: loginRecord{FirstRequest: start, Restarts: 3, Restarted: ago(time.Minute)},
			asks:     true,
			other:    true,
			want:     loginRecord{FirstRequest: start, LastRequest: testTime, Restarts: 3, Restarted: ago(time.Minute)},
		},
		"Exhausted": {
			reason:   "After the fourth restart, and while others log in, the node itself is at fault.",
			existing: loginRecord{FirstRequest: start, Restarts: 4, Restarted: ago(time.Minute)},
			asks:     true,
			other:    true,
			want:     loginRecord{FirstRequest: start, LastRequest: testTime, Restarts: 4, Restarted: ago(time.Minute)},
			step:     stepReplace,
		},
		"ExhaustedBeforeAttempt": {
			reason:   "A node that waits for its next restart may be healthy, and keeps its device.",
			existing: loginRecord{FirstRequest: start, LastRequest: ago(30 * time.Minute), Restarts: 4},
			other:    true,
			want:     loginRecord{FirstRequest: start, Restarts: 5, Restarted: testTime},
			step:     stepRestart,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, step := tc.existing.next(tc.asks, tc.connected, tc.other, testTime)
			if diff := cmp.Diff(tc.want, got); diff != "" || step != tc.step {
				t.Errorf("\n%s\nnext(...): step %d, want %d; -want, +got:\n%s", tc.reason, step, tc.step, diff)
			}
			// The record survives in an annotation.
			w := newWorld(t)
			if err := w.external().save(t.Context(), w.mg, record{Login: got}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, w.record().Login); diff != "" {
				t.Errorf("\n%s\nrecordOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// device returns the machine's device, and how many keys the machine has.
func (w *simWorld) device() (string, int) {
	w.t.Helper()
	ds, err := w.api.devices.Devices(w.t.Context(), tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	ks, err := w.api.keys.KeysByDescription(w.t.Context(), keyDescription("cluster", w.mg))
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(ds, func(d tailscale.Device) bool { return d.Hostname == w.mg.Spec.ForProvider.Hostname })
	if i < 0 {
		return "", len(ks)
	}
	return ds[i].NodeID, len(ks)
}

// cut makes control unreachable for the pod, which starts again and asks for a key.
func (w *simWorld) cut() {
	w.t.Helper()
	w.away = true
	id, _ := w.device()
	w.sim.SetOnline(id, false)
	w.pod()
	if _, ok := w.get("edge-ingress-0").Data[kubetypes.KeyReissueAuthkey]; !ok {
		w.t.Fatal("want the pod to ask for a key")
	}
}

// report writes the agent's report of an error.
func (w *simWorld) report(loginError string) {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(w.mg), m); err != nil {
		w.t.Fatal(err)
	}
	m.Status.Agent = &v1alpha1.MachineAgentStatus{LoginError: loginError}
	if err := w.kube.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	w.mg.Status.Agent = m.Status.Agent
}

// step moves the clock by d, by ten seconds at a time, as the provider polls.
func (w *simWorld) step(d time.Duration) {
	w.t.Helper()
	for end := w.at.Add(d); w.at.Before(end); {
		w.at = w.at.Add(10 * time.Second)
		w.reconcile()
		w.pod()
	}
}

// TestControlAway starts a pod with a whole state while control is away: whatever happens, the
// machine keeps its device, and the pod is restarted at growing intervals.
func TestControlAway(t *testing.T) {
	w := newSimWorld(t)
	w.run()
	w.well("at first")
	id, _ := w.device()
	w.cut()
	w.report("register request: connection\nrefused, tskey-auth-secret")
	type seen struct {
		Device   string
		Keys     int
		Restarts int
		Ready    string
	}
	failing := "LoginFailed The node cannot log in, although its device is in the tailnet and authorized; it keeps its identity, and its container is restarted, " +
		"at growing intervals, until the control server lets it in; the node reports: register request: connection refused, tskey-***"
	for _, s := range []struct {
		delay    time.Duration
		restarts int
	}{{20 * time.Second, 0}, {20 * time.Second, 1}, {80 * time.Second, 2}, {320 * time.Second, 3}, {29 * time.Minute, 3}, {2 * time.Minute, 4}, {31 * time.Minute, 5}} {
		w.step(s.delay)
		got := seen{Restarts: w.restarts}
		got.Device, got.Keys = w.device()
		c := w.mg.GetCondition("Ready")
		got.Ready = string(c.Reason) + " " + c.Message
		if diff := cmp.Diff(seen{Device: id, Restarts: s.restarts, Ready: failing}, got); diff != "" {
			t.Errorf("%s later: -want, +got:\n%s", s.delay, diff)
		}
	}
	w.away = false
	w.report("")
	w.step(32 * time.Minute)
	w.well("when control is back")
	if current, _ := w.device(); current != id {
		t.Errorf("the device was %s, is %s", id, current)
	}
	if r, err := recordOf(w.mg); err != nil || r.Login.open() {
		t.Error("want the record to be closed")
	}
}

// TestLastResort shows that a node which alone cannot log in becomes another device in the end: once,
// and only after another machine has logged in.
func TestLastResort(t *testing.T) {
	cases := map[string]struct {
		reason string
		other  func(w *simWorld)

		// restarted reports that the next restart is due at once.
		restarted bool
	}{
		"NewDevice": {
			reason: "A device that joins proves that control lets machines in.",
			other: func(w *simWorld) {
				k, err := w.api.keys.CreateAuthKey(w.t.Context(), tailscale.AuthKeyRequest{Preauthorized: true, Description: "other", Tags: []string{"tag:k8s"}, Expiry: time.Hour})
				if err != nil {
					w.t.Fatal(err)
				}
				if _, err := w.sim.Join(tailnetsim.Puppet{Hostname: "other", AuthKey: k.Key}); err != nil {
					w.t.Fatal(err)
				}
				// Devices are made by the real clock.
				w.at = time.Now().Add(2 * clockSkew)
			},
			restarted: true,
		},
		"OtherMachine": {
			reason: "So does a machine of the cluster that could not log in either, and is back.",
			other: func(w *simWorld) {
				mg := machine(func(m *v1alpha1.Machine) {
					m.Namespace, m.Name, m.UID = "other", "other-0", "other"
					m.SetAnnotations(map[string]string{annotationTailnet: w.mg.GetAnnotations()[annotationTailnet]})
				})
				if err := w.kube.Create(w.t.Context(), mg); err != nil {
					w.t.Fatal(err)
				}
				e := connectTo(w.t, w.kube, w.api, mg, w.at)
				if err := e.save(w.t.Context(), mg, record{Login: loginRecord{LoggedIn: w.at}}); err != nil {
					w.t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSimWorld(t)
			w.run()
			id, _ := w.device()
			w.cut()
			w.step(2 * time.Hour)
			if current, keys := w.device(); current != id || keys != 0 {
				t.Fatalf("without another login: device %s, want %s, and no key, got %d", current, id, keys)
			}
			tc.other(w)
			if !tc.restarted {
				w.step(time.Minute)
			}
			if current, keys := w.device(); current != id || keys != 0 {
				t.Fatalf("before another attempt: device %s, want %s, and no key, got %d", current, id, keys)
			}
			w.step(40 * time.Minute)
			if current, keys := w.device(); current != "" || keys != 1 {
				t.Fatalf("\n%s\nwant the device to be deleted, and one key; got device %q, %d keys", tc.reason, current, keys)
			}
			w.away = false
			w.step(3 * time.Minute)
			if current, _ := w.device(); current == id || current == "" {
				t.Errorf("\n%s\nwant another device, got %q", tc.reason, current)
			}
		})
	}
}

// TestUnknownIsNotGone shows that a machine whose device cannot be looked up gets no key.
func TestUnknownIsNotGone(t *testing.T) {
	w := newSimWorld(t)
	w.run()
	id, _ := w.device()
	w.cut()
	if err := w.sim.SetFaults(tailnetsim.Fault{Status: 503}); err != nil {
		t.Fatal(err)
	}
	e := connectTo(t, w.kube, w.api, w.mg, w.at)
	if _, err := e.Observe(t.Context(), w.mg); err == nil {
		t.Error("want an error while the API fails")
	}
	if err := e.ensure(t.Context(), w.mg); err == nil {
		t.Error("want an error while the API fails")
	}
	if err := w.sim.SetFaults(); err != nil {
		t.Fatal(err)
	}
	if current, keys := w.device(); current != id || keys != 0 {
		t.Errorf("device %s, want %s, and no key, got %d", current, id, keys)
	}
}

// A laggingDevices has an older list of devices in its cache.
type laggingDevices struct {
	devicesAPI

	cached []tailscale.Device
}

func (f laggingDevices) Devices(ctx context.Context, s tailscale.Staleness) ([]tailscale.Device, error) {
	if s == tailscale.Cached {
		return f.cached, nil
	}
	return f.devicesAPI.Devices(ctx, s)
}

// TestRequestNeedsRecentDevice shows that no cached list decides about a request for a key: the device may
// have expired or disconnected since.
func TestRequestNeedsRecentDevice(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(wholeState("device_id", "n1"))
	w.settle()
	cached := []tailscale.Device{w.api.devices["n1"]}
	d := w.api.devices["n1"]
	d.ConnectedToControl, d.Expires = false, tsclient.Time{Time: w.at}
	w.api.devices["n1"] = d
	w.write(wholeState("device_id", "n1", "reissue_authkey", ""))
	w.at = w.at.Add(time.Minute)
	a := w.api.areas()
	a.devices = laggingDevices{devicesAPI: a.devices, cached: cached}
	e := connectTo(t, w.kube, a, w.mg, w.at)
	if _, err := e.Update(t.Context(), w.mg); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	if w.authKey() != "tskey-auth-k2" {
		t.Errorf("want a second key, got %q", w.authKey())
	}
}

// wholeState returns a state Secret's data with an identity, and further keys.
func wholeState(kv ...string) map[string]string {
	out := map[string]string{"_machinekey": "k", "_profiles": "{}", "_current-profile": "profile-1", "profile-1": `{"Config":{"NodeID":"n1"}}`}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}
