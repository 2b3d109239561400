// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// fromBackup makes a Machine what a restore makes of it.
func fromBackup(m *v1alpha1.Machine) {
	m.SetUID("restored")
	m.SetAnnotations(map[string]string{meta.AnnotationNodeID: "n1", meta.AnnotationClusterID: "cluster"})
}

// backup returns the state Secret of a backup.
func backup(change ...func(*corev1.Secret)) *corev1.Secret {
	s := state("device_id", "n1")
	s.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "edge-ingress-0", Labels: map[string]string{
		meta.LabelMachine: "edge-ingress-0", meta.LabelSecretType: meta.SecretTypeState,
	}}
	for _, f := range change {
		f(s)
	}
	return s
}

// restoredWorld returns a world after a restore. The device n1 exists since before the Machine.
func restoredWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, objects...)
	stored := &v1alpha1.Machine{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(w.mg), stored); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*v1alpha1.Machine{w.mg, stored} {
		fromBackup(m)
	}
	if err := w.kube.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	w.api.use("k0", "n1", testTime.AddDate(-1, 0, 0))
	w.api.keys = map[string]tailscale.Key{}
	w.api.offline("n1")
	return w
}

func (w *world) devices() []string { return slices.Sorted(maps.Keys(w.api.devices)) }

// TestRestore shows that a Machine of a backup takes over its device, without a key.
func TestRestore(t *testing.T) {
	w := restoredWorld(t, backup())
	w.settle()
	s := w.secret("edge-ingress-0")
	if !metav1.IsControlledBy(s, w.mg) || !slices.Contains(s.GetFinalizers(), secrets.FinalizerState) || s.GetLabels()[meta.LabelBackup] != "true" {
		t.Errorf("state Secret: want it to be the Machine's, got %+v", s.ObjectMeta)
	}
	if w.api.minted != 0 || w.authKey() != "" {
		t.Errorf("want no auth key, got %d", w.api.minted)
	}
	if diff := cmp.Diff([]string{"n1"}, w.devices()); diff != "" || w.mg.Status.AtProvider.NodeID != "n1" || w.ready().Status != corev1.ConditionTrue {
		t.Errorf("want the device of the backup: -want, +got:\n%s\n%v", diff, w.ready())
	}

	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.empty()
}

// TestRestoreWaits shows that a Machine of a backup waits while it may not use its device, and that
// its deletion does nothing to the device.
func TestRestoreWaits(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  []client.Object
		change func(w *world)
		want   xpv2.ConditionReason
		// fix removes the cause.
		fix func(w *world)
	}{
		"Online": {
			reason: "Two nodes with one state push each other out of the tailnet.",
			state:  []client.Object{backup()},
			change: func(w *world) { w.api.use("k0", "n1", testTime.AddDate(-1, 0, 0)) },
			want:   meta.ReasonDeviceInUse,
			fix:    func(w *world) { w.api.offline("n1") },
		},
		"OtherCluster": {
			reason: "A copy of a cluster is another cluster.",
			state:  []client.Object{backup()},
			change: func(w *world) { w.mg.Annotations[meta.AnnotationClusterID] = "old" },
			want:   meta.ReasonOtherCluster,
			fix:    func(w *world) { w.mg.Annotations[meta.AnnotationClusterID] = "cluster" },
		},
		"NoState": {
			reason: "A new device would replace the one whose state is restored a minute later.",
			want:   meta.ReasonStateMissing,
			fix: func(w *world) {
				if err := w.kube.Create(w.t.Context(), backup()); err != nil {
					w.t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"Fixed", "Deleted"} {
				w := restoredWorld(t, tc.state...)
				if tc.change != nil {
					tc.change(w)
				}
				w.settle()
				if got := w.ready(); got.Reason != tc.want || got.Status != corev1.ConditionFalse {
					t.Fatalf("\n%s\nwant %s, got %v", tc.reason, tc.want, got)
				}
				if w.api.minted != 0 {
					t.Errorf("\n%s\nwant no auth key", tc.reason)
				}
				if end == "Deleted" {
					deleted := metav1.NewTime(w.at)
					w.mg.DeletionTimestamp = &deleted
				} else {
					tc.fix(w)
				}
				w.settle()
				if diff := cmp.Diff([]string{"n1"}, w.devices()); diff != "" || w.api.minted != 0 {
					t.Errorf("\n%s\n%s: want the device of the backup: -want, +got:\n%s", tc.reason, end, diff)
				}
				if end == "Fixed" && w.ready().Status != corev1.ConditionTrue {
					t.Errorf("\n%s\nwant Ready, got %v", tc.reason, w.ready())
				}
			}
		})
	}
}

// TestRestoreDeviceGone shows that a Machine of a backup whose device was deleted gets a key once
// its node requests one.
func TestRestoreDeviceGone(t *testing.T) {
	w := restoredWorld(t, backup())
	delete(w.api.devices, "n1")
	w.settle()
	if w.api.minted != 0 {
		t.Errorf("want no auth key before the node requests one")
	}
	w.write(map[string]string{"device_id": "n1", "reissue_authkey": ""})
	w.settle()
	if w.authKey() != "tskey-auth-k1" {
		t.Errorf("want an auth key for the node that requests one")
	}
}

// TestForgedBackup shows that a Secret which a tenant writes leads to no device: a Machine takes
// over only the state of the device that the provider has recorded.
func TestForgedBackup(t *testing.T) {
	cases := map[string]struct {
		reason  string
		machine func(*v1alpha1.Machine)
		secret  *corev1.Secret
	}{
		"NewMachine": {
			reason:  "A Machine without a device has no backup.",
			machine: func(m *v1alpha1.Machine) { m.SetAnnotations(nil) },
			secret:  backup(),
		},
		"OtherDevice": {
			reason: "The state of another device is not the Machine's.",
			secret: backup(func(s *corev1.Secret) { s.Data["device_id"] = []byte("victim") }),
		},
		"NoDevice": {
			reason: "An empty state would make the node join as another device.",
			secret: backup(func(s *corev1.Secret) { s.Data = nil }),
		},
		"OtherLabel": {
			reason: "A Secret of another Machine is not this one's.",
			secret: backup(func(s *corev1.Secret) { s.Labels[meta.LabelMachine] = "edge-ingress-1" }),
		},
		"Owned": {
			reason: "A Secret with an owner is the owner's.",
			secret: backup(func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}}
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := restoredWorld(t, tc.secret)
			if tc.machine != nil {
				tc.machine(w.mg)
			}
			if _, err := w.external().Observe(t.Context(), w.mg); err == nil {
				t.Errorf("\n%s\nObserve(...): want an error", tc.reason)
			}
			if _, err := w.external().Update(t.Context(), w.mg); err == nil {
				t.Errorf("\n%s\nUpdate(...): want an error", tc.reason)
			}
			if diff := cmp.Diff(tc.secret.GetOwnerReferences(), w.secret("edge-ingress-0").GetOwnerReferences()); diff != "" || w.api.minted != 0 {
				t.Errorf("\n%s\nwant nothing to change: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackupLabel shows that state Secrets of earlier versions get the label, and keep their state.
func TestBackupLabel(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{"device_id": "n1"})
	s := w.secret("edge-ingress-0")
	delete(s.Labels, meta.LabelBackup)
	if err := w.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.settle()
	s = w.secret("edge-ingress-0")
	if s.GetLabels()[meta.LabelBackup] != "true" || string(s.Data["device_id"]) != "n1" {
		t.Errorf("want the label, and the state: %v, %d keys", s.GetLabels(), len(s.Data))
	}
	if id := w.mg.GetAnnotations()[meta.AnnotationClusterID]; id != "cluster" {
		t.Errorf("want the cluster's ID in the Machine, got %q", id)
	}
}
