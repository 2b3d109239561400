// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// victim returns a device that does not belong to the machine. Changes make it look as if it did.
func victim(change ...func(*tailscale.Device)) tailscale.Device {
	d := tailscale.Device{
		NodeID: "victim", Name: "default-edge-ingress-0-1.tail1234.ts.net", Hostname: "default-edge-ingress-0",
		Tags: []string{"tag:k8s"}, Authorized: true, ConnectedToControl: true, Created: tsclient.Time{Time: testTime.Add(time.Hour)},
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

// victims returns devices that each differ from the machine's in one property.
func victims() map[string]struct {
	reason  string
	device  tailscale.Device
	machine client.Object
	want    string
} {
	return map[string]struct {
		reason  string
		device  tailscale.Device
		machine client.Object
		want    string
	}{
		"Untagged": {
			reason: "A device without the machine's tags did not use its key.",
			device: victim(func(d *tailscale.Device) { d.Tags = nil }), want: "it has the tags",
		},
		"OtherTags": {
			reason: "Nor did a device with other tags.",
			device: victim(func(d *tailscale.Device) { d.Tags = []string{"tag:db"} }), want: "it has the tags",
		},
		"OtherHostname": {
			reason: "A node has the hostname of its config.",
			device: victim(func(d *tailscale.Device) { d.Hostname = "db" }), want: "its hostname is",
		},
		"LongerHostname": {
			reason: "A hostname with the same beginning is a different one.",
			device: victim(func(d *tailscale.Device) { d.Hostname = "default-edge-ingress-0-1" }), want: "its hostname is",
		},
		"Older": {
			reason: "A device that was there before the machine's key did not use it.",
			device: victim(func(d *tailscale.Device) { d.Created.Time = testTime.Add(-time.Hour) }), want: "it has been there since",
		},
		"OfOtherMachine": {
			reason: "A device of another Machine is not this Machine's.",
			device: victim(), want: "it is that of Machine other/db",
			machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "other", Name: "db", UID: "other", Annotations: map[string]string{meta.AnnotationNodeID: "victim"},
			}},
		},
	}
}

// TestCompromisedPod writes everything that a pod's Role allows, to make the provider act on a
// device of somebody else.
func TestCompromisedPod(t *testing.T) {
	for name, tc := range victims() {
		for _, own := range []bool{false, true} {
			title := name + "AtFirst"
			if own {
				title = name + "Later"
			}
			t.Run(title, func(t *testing.T) {
				var objects []client.Object
				if tc.machine != nil {
					objects = append(objects, tc.machine)
				}
				w := newWorld(t, objects...)
				w.settle()
				remaining := []string{"victim"}
				if own {
					w.api.use("k1", "n1", testTime)
					w.write(map[string]string{"device_id": "n1"})
					w.settle()
				}
				w.api.devices["victim"] = tc.device
				w.mg.Status.AtProvider.NodeID = "victim"
				w.mg.Status.Agent = &v1alpha1.MachineAgentStatus{}
				// The pod names the device, requests a key, and names the device again.
				for _, data := range []map[string]string{
					{"device_id": "victim"},
					{"_machinekey": "k", "_profiles": "{}", "_current-profile": "profile-1", "profile-1": `{"Config":{"NodeID":"victim"}}`},
					{"device_id": "victim", "reissue_authkey": ""},
					{"device_id": "victim", "reissue_authkey": w.authKey()},
					{"device_id": "victim"},
				} {
					w.at = w.at.Add(time.Minute)
					w.write(data)
					w.settle()
					c := w.ready()
					if c.Status != corev1.ConditionFalse || c.Reason != meta.ReasonDeviceRefused || !strings.Contains(c.Message, tc.want) {
						t.Errorf("\n%s\nwant the condition to say %q, got %v", tc.reason, tc.want, c)
					}
					if id := meta.NodeIDOf(w.mg); id == "victim" {
						t.Errorf("\n%s\nwant the device not to count as the machine's", tc.reason)
					}
				}
				deleted := metav1.NewTime(w.at)
				w.mg.DeletionTimestamp = &deleted
				w.settle()
				if diff := cmp.Diff(remaining, slices.Sorted(maps.Keys(w.api.devices))); diff != "" {
					t.Errorf("\n%s\ndevices: -want, +got:\n%s", tc.reason, diff)
				}
				if w.api.tags != nil {
					t.Errorf("\n%s\na device was tagged %v", tc.reason, w.api.tags)
				}
			})
		}
	}
}

// TestTrustedOnce shows how an admin may change a device without the machine losing it.
func TestTrustedOnce(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{"device_id": "n1"})
	w.settle()
	stored := &v1alpha1.Machine{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(w.mg), stored); err != nil || meta.NodeIDOf(stored) != "n1" {
		t.Fatalf("want the device to be remembered, got %q, %v", meta.NodeIDOf(stored), err)
	}
	d := w.api.devices["n1"]
	d.Hostname, d.Name, d.Tags = "renamed", "renamed.tail1234.ts.net", []string{"tag:admin"}
	w.api.devices["n1"] = d
	w.reconcile()
	if w.ready().Status != corev1.ConditionTrue || !slices.Equal(w.api.tags, []string{"tag:k8s"}) {
		t.Errorf("want the device to be the machine's, and to have its tags again, got %v, %v", w.ready(), w.api.tags)
	}
	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.empty()
}

// TestUpgrade upgrades a Machine whose device joined before the provider recorded devices.
func TestUpgrade(t *testing.T) {
	cases := map[string]struct {
		reason  string
		deleted bool
	}{
		"Kept":    {reason: "Its device is adopted."},
		"Deleted": {reason: "The device is deleted with the Machine.", deleted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			w.api.use("k1", "n1", testTime)
			w.mg.Status.AtProvider.NodeID = "n1"
			config := w.secret("edge-ingress-0-config")
			config.Annotations = map[string]string{oldKeyID: "k1", oldIssued: testTime.Format(time.RFC3339)}
			config.Data = nil
			w.unrecord()
			if err := w.kube.Update(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			w.write(map[string]string{"device_id": "n1"})
			if tc.deleted {
				deleted := metav1.NewTime(w.at)
				w.mg.DeletionTimestamp = &deleted
			}
			w.settle()
			if tc.deleted {
				w.empty()
				return
			}
			if id := meta.NodeIDOf(w.mg); id != "n1" || w.ready().Status != corev1.ConditionTrue {
				t.Errorf("\n%s\ngot %q, %v", tc.reason, id, w.ready())
			}
		})
	}
}

// TestAdoptKeepsReport has the agent report while its device is adopted.
func TestAdoptKeepsReport(t *testing.T) {
	w := newWorld(t)
	stored := &v1alpha1.Machine{}
	if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(w.mg), stored); err != nil {
		t.Fatal(err)
	}
	stored.Status.Agent = &v1alpha1.MachineAgentStatus{PodIP: "10.0.0.7"}
	if err := w.kube.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	e := w.external()
	for _, id := range []string{"n1", "n2"} {
		if err := e.adopt(t.Context(), w.mg, id, ""); err != nil {
			t.Fatalf("adopt(...): %v", err)
		}
		if meta.NodeIDOf(w.mg) != id || w.mg.Status.Agent == nil || w.mg.Status.Agent.PodIP != "10.0.0.7" {
			t.Errorf("want device %s and the agent's report, got %q, %v", id, meta.NodeIDOf(w.mg), w.mg.Status.Agent)
		}
	}
	stale := machine(func(m *v1alpha1.Machine) { m.SetAnnotations(map[string]string{meta.AnnotationNodeID: "n1"}) })
	if err := e.adopt(t.Context(), stale, "n3", ""); err == nil {
		t.Error("adopt(...): want a conflict where the cache lacks the last device")
	}
}
