// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	w.settle()
	if w.authKey() != "tskey-auth-k1" || w.ready().Reason != xpv2.ReasonCreating || !w.mg.Status.AtProvider.KeyIssued {
		t.Fatalf("new machine: want a key and Creating, got %v", w.ready())
	}
	st := w.secret("edge-ingress-0")
	wantLabels := map[string]string{meta.LabelMachine: "edge-ingress-0", meta.LabelSecretType: meta.SecretTypeState, meta.LabelBackup: "true"}
	if diff := cmp.Diff(wantLabels, st.GetLabels()); diff != "" || !metav1.IsControlledBy(st, w.mg) {
		t.Errorf("state Secret: -want, +got:\n%s", diff)
	}

	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{"device_id": "n1"})
	w.settle()
	if w.authKey() != "" || w.ready().Status != corev1.ConditionTrue || w.mg.Status.AtProvider.NodeID != "n1" {
		t.Fatalf("joined machine: want Ready without a key, got %v", w.ready())
	}

	// An admin deletes the device; the node requests a new key.
	w.at = w.at.Add(time.Minute)
	delete(w.api.devices, "n1")
	w.settle()
	if w.ready().Status != corev1.ConditionFalse {
		t.Errorf("machine without device: want not Ready")
	}
	w.write(map[string]string{"device_id": "n1", "reissue_authkey": ""})
	w.settle()
	if w.authKey() != "tskey-auth-k2" {
		t.Fatalf("machine that asked: want a second key")
	}
	w.write(map[string]string{})
	w.settle()
	w.api.use("k2", "n2", w.at)
	w.write(map[string]string{"device_id": "n2"})
	w.settle()
	if w.authKey() != "" || w.ready().Status != corev1.ConditionTrue || w.mg.Status.AtProvider.NodeID != "n2" {
		t.Fatalf("machine that came back: want Ready, got %v", w.ready())
	}

	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.empty()
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason    string
		setup     func(w *world)
		remaining []string // Devices.
	}{
		"KeyUnused": {
			reason:    "An unused key is deleted, and the device of a namesake stays.",
			setup:     func(w *world) { w.api.use("other", "namesake", testTime) },
			remaining: []string{"namesake"},
		},
		"NodeIDNotInStatus": {
			reason: "A node that joined after the last observation is found in its state.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.write(map[string]string{"device_id": "n1"})
			},
		},
		"StateLost": {
			reason: "A node whose state Secret is gone is found by its properties.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.offline("n1")
				w.write(map[string]string{})
			},
		},
		"StateLostOnline": {
			reason: "A device that stays online after the machine's pod must have ended belongs to another cluster.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.write(map[string]string{})
				w.at = w.at.Add(offlineGrace)
				w.deleted = testTime
			},
			remaining: []string{"n1"},
		},
		"StateLostHeldByState": {
			reason: "A device in the state of another Machine belongs to that Machine.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.offline("n1")
				s := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "x-0", Labels: map[string]string{meta.LabelSecretType: meta.SecretTypeState}},
					Data:       map[string][]byte{"device_id": []byte("n1")},
				}
				if err := w.kube.Create(w.t.Context(), s); err != nil {
					w.t.Fatal(err)
				}
			},
			remaining: []string{"n1"},
		},
		"StateLostSameHostname": {
			reason: "If another Machine has the hostname, the device may belong to that Machine.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.offline("n1")
				other := machine(func(m *v1alpha1.Machine) { m.Namespace, m.UID = "other", "other" })
				if err := w.kube.Create(w.t.Context(), other); err != nil {
					w.t.Fatal(err)
				}
			},
			remaining: []string{"n1"},
		},
		"StateLostYounger": {
			reason: "A device that joined when the machine's key had expired used another one.",
			setup: func(w *world) {
				w.api.use("k1", "younger", testTime.Add(keyExpiry+time.Hour))
				w.api.offline("younger")
			},
			remaining: []string{"younger"},
		},
		"NeverIssued": {
			reason: "A machine that never got a key has no device: a similar device belongs to another cluster.",
			setup: func(w *world) {
				w.api.use("other", "namesake", testTime)
				w.api.offline("namesake")
				config := w.secret("edge-ingress-0-config")
				config.Data = nil
				if err := w.kube.Update(w.t.Context(), config); err != nil {
					w.t.Fatal(err)
				}
				w.unrecord()
				delete(w.api.keys, "k1")
			},
			remaining: []string{"namesake"},
		},
		"ConfigLost": {
			reason: "The record of the key is not in the config Secret, which anyone with the role edit can delete.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.offline("n1")
				w.write(map[string]string{})
				if err := w.kube.Delete(w.t.Context(), w.secret("edge-ingress-0-config")); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		"CrashAfterRevocation": {
			reason: "After a restart, the provider still knows that the key which it revoked was unused.",
			setup: func(w *world) {
				w.api.use("other", "namesake", testTime)
				w.api.offline("namesake")
				e := w.external()
				if _, err := e.deleteKeys(w.t.Context(), w.mg, w.record()); err != nil {
					w.t.Fatal(err)
				}
			},
			remaining: []string{"namesake"},
		},
		"StateLostTwoAlike": {
			reason: "If two devices look alike, neither is deleted.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.use("other", "namesake", testTime)
			},
			remaining: []string{"n1", "namesake"},
		},
		"StateLostOlder": {
			reason: "A device that is older than the machine is not the machine's.",
			setup: func(w *world) {
				w.api.use("k1", "older", testTime.Add(-time.Hour))
				w.api.offline("older")
			},
			remaining: []string{"older"},
		},
		"OrphanKey": {
			reason: "A key that was minted but never recorded is found by its description.",
			setup: func(w *world) {
				w.api.keys["orphan"] = tailscale.Key{ID: "orphan", Description: keyDescription("cluster", w.mg)}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			tc.setup(w)
			deleted := metav1.NewTime(w.at)
			if !w.deleted.IsZero() {
				deleted = metav1.NewTime(w.deleted)
			}
			w.mg.DeletionTimestamp = &deleted
			w.settle()
			if diff := cmp.Diff(tc.remaining, slices.Sorted(maps.Keys(w.api.devices))); diff != "" {
				t.Errorf("\n%s\ndevices: -want, +got:\n%s", tc.reason, diff)
			}
			for id, k := range w.api.keys {
				if !k.Invalid && (id == "k1" || id == "orphan") {
					t.Errorf("\n%s\nkey %q is left", tc.reason, id)
				}
			}
			l := &corev1.SecretList{}
			if err := w.kube.List(t.Context(), l, client.InNamespace("default")); err != nil || len(l.Items) != 0 {
				t.Errorf("\n%s\nSecrets are left: %d, %v", tc.reason, len(l.Items), err)
			}
		})
	}
}

// TestDeleteWaitsForPod deletes a machine whose state was lost and whose pod still runs.
func TestDeleteWaitsForPod(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{})
	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	if _, err := w.external().Delete(t.Context(), w.mg); err == nil || len(w.api.devices) != 1 {
		t.Fatalf("Delete(...): want an error while the device is online, got %v and %d devices", err, len(w.api.devices))
	}
	w.api.offline("n1")
	w.settle()
	w.empty()
}

func TestCrashBetweenMintAndRecord(t *testing.T) {
	w := newWorld(t)
	w.api.keys["orphan"] = tailscale.Key{ID: "orphan", Description: keyDescription("cluster", w.mg)}
	w.settle()
	if _, ok := w.api.keys["orphan"]; ok || len(w.api.keys) != 1 {
		t.Errorf("want one key that is known, got %v", slices.Collect(maps.Keys(w.api.keys)))
	}
}

func TestStateSecretDeleted(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{"device_id": "n1"})
	w.settle()

	st := w.secret("edge-ingress-0")
	if err := w.kube.Delete(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	at := w.secret("edge-ingress-0").GetDeletionTimestamp()
	w.at = at.Time
	w.settle()
	if w.secret("edge-ingress-0").GetUID() != st.GetUID() || w.ready().Status != corev1.ConditionFalse {
		t.Errorf("want the Secret to be kept for a while: its namespace may be going away")
	}
	w.at = at.Add(stateDeletedGrace)
	w.settle()
	if fresh := w.secret("edge-ingress-0"); fresh.GetDeletionTimestamp() != nil || len(fresh.Data) != 0 {
		t.Errorf("want a new, empty Secret")
	}

	// The pod restarts without its state, requests a key, and joins again.
	w.at = w.at.Add(time.Minute)
	w.write(map[string]string{"reissue_authkey": ""})
	w.settle()
	w.write(map[string]string{})
	w.api.use("k2", "n2", w.at)
	w.write(map[string]string{"device_id": "n2"})
	w.settle()
	if diff := cmp.Diff([]string{"n2"}, slices.Sorted(maps.Keys(w.api.devices))); diff != "" || w.mg.Status.AtProvider.NodeID != "n2" {
		t.Errorf("devices: -want, +got:\n%s", diff)
	}
}

func TestForeignSecretRefused(t *testing.T) {
	w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "edge-ingress-0"}})
	if _, err := w.external().Observe(t.Context(), w.mg); err == nil || !strings.Contains(err.Error(), "not this Machine's") {
		t.Errorf("Observe(...): want a foreign Secret to be refused, got: %v", err)
	}
	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.secret("edge-ingress-0")
}

func TestConnectDeletedNeverCreated(t *testing.T) {
	errBoom := errors.New("boom")
	c := &connector{
		kube:    newWorld(t).kube,
		connect: func(context.Context, resource.ModernManaged) (connection, error) { return connection{}, errBoom },
	}
	deleted := metav1.NewTime(testTime)
	mg := machine(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &deleted })
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): want the deletion of a machine that was never made to need no config: %v", err)
	}
	if o, err := e.Observe(t.Context(), mg); err != nil || o.ResourceExists {
		t.Errorf("Observe(...): want nothing, got %v, %v", o, err)
	}
	if _, err := c.Connect(t.Context(), machine()); !errors.Is(err, errBoom) {
		t.Errorf("Connect(...): want the error, got: %v", err)
	}
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	w.mg.Spec.ForProvider.Tags = nil
	e := w.external()
	if _, err := e.Create(t.Context(), w.mg); err == nil || !strings.Contains(err.Error(), "needs a tag") {
		t.Errorf("Create(...): want an error that asks for a tag, got: %v", err)
	}
}

func TestOrphans(t *testing.T) {
	w := newWorld(t)
	w.settle()
	st := w.secret("edge-ingress-0")
	if err := w.kube.Delete(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	r := &secretReconciler{kube: w.kube}
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(st)}

	mg := w.mg.DeepCopy()
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatalf("Reconcile(...): %v", err)
	}
	w.secret("edge-ingress-0") // The Secret of an existing Machine.

	if err := w.kube.Delete(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatalf("Reconcile(...): %v", err)
	}
	if err := w.kube.Get(t.Context(), req.NamespacedName, st); !kerrors.IsNotFound(err) {
		t.Errorf("want the Secret to be let go when its Machine is gone, got: %v", err)
	}
}

// TestLastSeen shows that a Machine reports when its device was last connected only while the
// device is not connected. Otherwise its status would change all the time.
func TestLastSeen(t *testing.T) {
	seen := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		online bool
		seen   *tsclient.Time
		want   *metav1.Time
	}{
		"Online":  {reason: "The time of a connected device changes all the time, so it is omitted.", online: true, seen: &tsclient.Time{Time: seen}},
		"Offline": {reason: "The time of a disconnected device is shown.", seen: &tsclient.Time{Time: seen}, want: &metav1.Time{Time: seen.Truncate(time.Second)}},
		"Unknown": {reason: "The API may omit the time."},
	} {
		t.Run(name, func(t *testing.T) {
			mg := machine()
			(&external{record: event.NewNopRecorder()}).report(mg, plan{nodeID: "n1"}, &tailscale.Device{NodeID: "n1", ConnectedToControl: tc.online, LastSeen: tc.seen}, false)
			if diff := cmp.Diff(tc.want, mg.Status.AtProvider.LastSeen); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
