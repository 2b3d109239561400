// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const profile = "profile-1"

// A simWorld has a machine, its pod and a simulated tailnet. The test controls the provider's
// clock.
type simWorld struct {
	t    *testing.T
	kube client.Client
	sim  *simtest.Running
	api  *api
	mg   *v1alpha1.Machine
	at   time.Time

	// askedWith is the auth key that the pod had when it requested another one and began to wait.
	// It is nil while the pod does not wait.
	askedWith *string
	joined    int

	// away reports that the pod cannot reach the control server.
	away bool

	// restart is the last restart that the pod's agent has seen, and restarts counts them.
	restart  string
	restarts int
}

func newSimWorld(t *testing.T) *simWorld {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	// The simulator makes devices by the real clock, and after their keys.
	w := &simWorld{t: t, sim: simtest.StartAPI(t), at: time.Now().AddDate(0, -1, 0)}
	w.mg = machine(func(m *v1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(w.at) })
	w.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(w.mg.DeepCopy()).Build()
	c, err := tailscale.NewClient(
		tailscale.Config{URL: w.sim.URL, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Nanosecond, Metrics: tailscale.NewMetrics()},
	)
	if err != nil {
		t.Fatal(err)
	}
	w.api = &api{devices: freshDevices{c.Devices()}, keys: c.Keys(), tailnet: c.Tailnet()}
	return w
}

// A freshDevices reads all lists again: the time of a simWorld moves by minutes, and the API's by none.
type freshDevices struct{ devicesAPI }

func (f freshDevices) Devices(ctx context.Context, _ tailscale.Staleness) ([]tailscale.Device, error) {
	return f.devicesAPI.Devices(ctx, tailscale.Current)
}

func (w *simWorld) get(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, s); err != nil {
		w.t.Fatalf("cannot get Secret: %v", err)
	}
	return s
}

func (w *simWorld) configKey() string {
	w.t.Helper()
	return authKeyOf(w.get("edge-ingress-0-config").Data[meta.ConfigKey])
}

// reconcile runs the provider once.
func (w *simWorld) reconcile() {
	w.t.Helper()
	e := connectTo(w.t, w.kube, w.api, w.mg, w.at)
	o, err := e.Observe(w.t.Context(), w.mg)
	if err != nil {
		w.t.Fatalf("Observe(...): %v", err)
	}
	if o.ResourceUpToDate {
		return
	}
	if _, err := e.Update(w.t.Context(), w.mg); err != nil {
		w.t.Fatalf("Update(...): %v", err)
	}
}

// pod runs the pod once: what containerboot (tailscale.com cmd/containerboot, kube/authkey) and
// tailscaled do between two restarts, or one read of the config while the pod waits for a key.
func (w *simWorld) pod() {
	w.t.Helper()
	st, key := w.get("edge-ingress-0"), w.configKey()
	if st.Data == nil {
		st.Data = map[string][]byte{}
	}
	if restart := w.get("edge-ingress-0-config").GetAnnotations()[meta.AnnotationRestart]; restart != w.restart {
		// The agent fails the probe of the container, which loses what it waits for.
		w.restart, w.askedWith = restart, nil
		w.restarts++
	}
	if w.askedWith != nil {
		if key == "" || key == *w.askedWith {
			return
		}
		// ClearReissueAuthKey: the request is removed together with the old device's identity. Then
		// the container restarts.
		for _, k := range []string{kubetypes.KeyReissueAuthkey, kubetypes.KeyDeviceID, string(ipn.CurrentProfileStateKey), profile} {
			delete(st.Data, k)
		}
		w.askedWith = nil
		w.write(st)
		return
	}
	// resetContainerbootState: an answered request is removed at the start.
	if broken, ok := st.Data[kubetypes.KeyReissueAuthkey]; ok && key != "" && string(broken) != key {
		delete(st.Data, kubetypes.KeyReissueAuthkey)
	}
	switch _, hasState := st.Data[profile]; {
	case w.away:
		w.ask(st, key)
	case hasState && w.mayRun(string(st.Data[profile])):
		st.Data[kubetypes.KeyDeviceID] = []byte(idOf(st.Data[profile]))
		w.sim.SetOnline(idOf(st.Data[profile]), true)
	case !hasState && key != "":
		id, err := w.sim.Join(tailnetsim.Puppet{Hostname: w.mg.Spec.ForProvider.Hostname, AuthKey: key})
		if err != nil {
			w.ask(st, key)
			break
		}
		w.joined++
		st.Data[string(ipn.MachineKeyStateKey)], st.Data[string(ipn.KnownProfilesStateKey)] = []byte("k"), []byte("{}")
		st.Data[string(ipn.CurrentProfileStateKey)] = []byte(profile)
		st.Data[profile] = []byte(`{"Config":{"NodeID":"` + id + `"}}`)
	default:
		// NeedsLogin.
		w.ask(st, key)
	}
	w.write(st)
}

func (w *simWorld) ask(st *corev1.Secret, key string) {
	st.Data[kubetypes.KeyReissueAuthkey] = []byte(key)
	w.askedWith = &key
}

func (w *simWorld) write(st *corev1.Secret) {
	w.t.Helper()
	if err := w.kube.Update(w.t.Context(), st); err != nil {
		w.t.Fatalf("cannot update state Secret: %v", err)
	}
}

func idOf(prefs []byte) string {
	s := &corev1.Secret{Data: map[string][]byte{string(ipn.CurrentProfileStateKey): []byte(profile), profile: prefs}}
	return nodestate.NodeID(s.Data)
}

// mayRun reports whether the tailnet still knows the node of a state.
func (w *simWorld) mayRun(prefs string) bool {
	w.t.Helper()
	d, err := w.api.devices.Device(w.t.Context(), idOf([]byte(prefs)))
	if tailscale.IsNotFound(err) {
		return false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return d.KeyExpiryDisabled || d.Expires.IsZero() || d.Expires.After(time.Now())
}

// run runs provider and pod several times each.
func (w *simWorld) run() {
	w.t.Helper()
	for range 8 {
		w.reconcile()
		w.pod()
	}
	w.reconcile()
}

// well fails the test unless the machine is Ready, its device is the only one, and no key is left.
func (w *simWorld) well(stage string) {
	w.t.Helper()
	type seen struct {
		Ready, Device string
		Devices       []string
		Key           string
		Keys          int
	}
	ds, err := w.api.devices.Devices(w.t.Context(), tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.NodeID)
	}
	ks, err := w.api.keys.KeysByDescription(w.t.Context(), keyDescription("cluster", w.mg))
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.mg.GetCondition("Ready")
	got := seen{Ready: string(c.Status) + " " + c.Message, Device: w.mg.Status.AtProvider.NodeID, Devices: ids, Key: w.configKey(), Keys: len(ks)}
	id := idOf(w.get("edge-ingress-0").Data[profile])
	want := seen{Ready: "True ", Device: id, Devices: []string{id}}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("%s: -want, +got:\n%s", stage, diff)
	}
}

// TestLosses removes state of a machine that can be lost, and waits until the machine recovers by
// itself.
func TestLosses(t *testing.T) {
	cases := map[string]struct {
		reason string
		lose   func(w *simWorld)
	}{
		"DeviceDeleted": {
			reason: "An admin deletes the device: the node is logged out and requests a key.",
			lose: func(w *simWorld) {
				if err := w.sim.Client(w.t).Devices().Delete(w.t.Context(), w.mg.Status.AtProvider.NodeID); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		"NodeKeyExpired": {
			reason: "An admin expires the node's key: the node needs a login and requests a key.",
			lose: func(w *simWorld) {
				url := w.sim.URL + "/api/v2/device/" + w.mg.Status.AtProvider.NodeID + "/expire"
				req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, url, strings.NewReader("{}"))
				if err != nil {
					w.t.Fatal(err)
				}
				req.SetBasicAuth(simtest.APIKey, "")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					w.t.Fatal(err)
				}
				if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
					w.t.Fatalf("cannot expire the node key: %d, %v", res.StatusCode, err)
				}
				// The key expired by the real clock.
				w.at = time.Now().Add(time.Duration(w.joined) * reissueInterval)
			},
		},
		"StateLost": {
			reason: "The state Secret is emptied: the node has neither state nor key and requests one.",
			lose: func(w *simWorld) {
				st := w.get("edge-ingress-0")
				st.Data = nil
				w.write(st)
			},
		},
		"StateSecretDeleted": {
			reason: "The state Secret is deleted: it is made again, and the node requests a key.",
			lose: func(w *simWorld) {
				if err := w.kube.Delete(w.t.Context(), w.get("edge-ingress-0")); err != nil {
					w.t.Fatal(err)
				}
				// The state was deleted by the real clock, which also dates devices. Keys are not
				// issued in quick succession.
				w.at = time.Now().Add(stateDeletedGrace + time.Second + time.Duration(w.joined-1)*reissueInterval)
			},
		},
		"ConfigSecretDeleted": {
			reason: "The config Secret is deleted: a node that is logged in needs no key.",
			lose: func(w *simWorld) {
				if err := w.kube.Delete(w.t.Context(), w.get("edge-ingress-0-config")); err != nil {
					w.t.Fatal(err)
				}
				w.reconcile()
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSimWorld(t)
			w.run()
			w.well("at first")
			for range 2 {
				w.at = w.at.Add(time.Hour)
				tc.lose(w)
				w.run()
				w.well(tc.reason)
			}
		})
	}
}

// TestKeyExpiresWhileWaiting shows that a machine recovers whose pod cannot be scheduled for days.
func TestKeyExpiresWhileWaiting(t *testing.T) {
	w := newSimWorld(t)
	w.reconcile()
	first := w.configKey()
	w.at = w.at.Add(keyExpiry - keyRenewal - time.Minute)
	w.reconcile()
	if w.configKey() != first {
		t.Error("want the key to stay while it is good")
	}
	for range 3 {
		last := w.configKey()
		w.at = w.at.Add(keyExpiry)
		w.reconcile()
		if w.configKey() == last || w.configKey() == "" {
			t.Fatal("want another key before the one that waits expires")
		}
		if _, err := w.sim.Join(tailnetsim.Puppet{Hostname: "thief", AuthKey: last}); err == nil {
			t.Error("want the key before to be revoked")
		}
	}
	w.run()
	w.well("when the pod runs at last")
}

// TestKeyRevokedWhileWaiting shows that a machine recovers whose key is invalid when its pod uses
// it.
func TestKeyRevokedWhileWaiting(t *testing.T) {
	w := newSimWorld(t)
	w.reconcile()
	ks, err := w.api.keys.KeysByDescription(t.Context(), keyDescription("cluster", w.mg))
	if err != nil || len(ks) != 1 {
		t.Fatalf("want one key, got %d, %v", len(ks), err)
	}
	if err := w.api.keys.RevokeAuthKey(t.Context(), ks[0].ID); err != nil {
		t.Fatal(err)
	}
	// Too soon for another key, because this one was just minted.
	w.run()
	if w.joined != 0 || w.askedWith == nil {
		t.Fatal("want the pod to have asked and to wait")
	}
	w.at = w.at.Add(reissueInterval)
	w.run()
	w.well("when the next key is allowed")
}

// TestReissueIsLimited shows the limit on keys for a pod that cannot keep any state.
func TestReissueIsLimited(t *testing.T) {
	w := newSimWorld(t)
	var keys []string
	for range 20 {
		w.reconcile()
		if k := w.configKey(); k != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		w.pod()
		st := w.get("edge-ingress-0")
		for k := range st.Data {
			if k != kubetypes.KeyReissueAuthkey {
				delete(st.Data, k)
			}
		}
		w.write(st)
		w.at = w.at.Add(5 * time.Second)
	}
	if most := int(20*5*time.Second/reissueInterval) + 1; len(keys) > most || len(keys) < 2 {
		t.Errorf("want at most %d keys in 100 seconds and more than one, got %d", most, len(keys))
	}
}
