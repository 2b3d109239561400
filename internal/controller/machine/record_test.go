// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Annotations that earlier versions wrote to the config Secret.
const (
	oldKeyID   = "gateway.tailscale.com/auth-key-id"
	oldIssued  = "gateway.tailscale.com/auth-key-issued"
	oldUnused  = "gateway.tailscale.com/auth-key-unused"
	oldTags    = "gateway.tailscale.com/auth-key-tags"
	oldRetired = "gateway.tailscale.com/retired-device-id"
	oldTailnet = "gateway.tailscale.com/tailnet"
)

// forge writes annotations of the config Secret, as anyone with Kubernetes' role edit can.
func (w *world) forge(annotations map[string]string) {
	w.t.Helper()
	s := w.secret("edge-ingress-0-config")
	for k, v := range annotations {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, k, v)
	}
	if err := w.kube.Update(w.t.Context(), s); err != nil {
		w.t.Fatalf("cannot update config Secret: %v", err)
	}
}

func (w *world) delete() {
	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
}

// TestForgedRecord has a tenant write to the config Secret which keys and devices are the machine's.
func TestForgedRecord(t *testing.T) {
	foreign := func(w *world) {
		w.api.devices["laptop"] = victim(func(d *tailscale.Device) {
			d.NodeID, d.Hostname, d.Tags, d.Created.Time = "laptop", "laptop", nil, testTime.AddDate(-1, 0, 0)
		})
		w.api.devices["db"] = victim(func(d *tailscale.Device) {
			d.NodeID, d.Tags, d.Created.Time = "db", []string{"tag:db"}, testTime.Add(time.Hour)
		})
		w.api.devices["older"] = victim(func(d *tailscale.Device) { d.NodeID, d.Created.Time = "older", testTime.Add(time.Minute) })
		for id, k := range map[string]tailscale.Key{
			"theirs":    {KeyType: tailscale.KeyTypeAuth, Description: "tsgw 0123456789abcdef other-edge-ingress-0"},
			"client":    {KeyType: tailscale.KeyTypeOAuthClient, Description: keyDescription("cluster", w.mg)},
			"token":     {KeyType: "api", Description: keyDescription("cluster", w.mg)},
			"federated": {KeyType: tailscale.KeyTypeFederatedIdentity, Description: keyDescription("cluster", w.mg)},
		} {
			k.ID = id
			w.api.keys[id] = k
		}
	}
	cases := map[string]struct {
		reason      string
		annotations map[string]string

		// named is the device that the pod names afterwards, or "".
		named string
	}{
		"RetiredLaptop": {
			reason:      "A user's laptop never was the machine's device.",
			annotations: map[string]string{oldRetired: "laptop"},
		},
		"RetiredLookalike": {
			reason:      "A device that looks like the machine's and was made after it may be another cluster's.",
			annotations: map[string]string{oldRetired: "older"},
		},
		"KeyOfAnother": {
			reason:      "The key has the description of another machine.",
			annotations: map[string]string{oldKeyID: "theirs"},
		},
		"OAuthClient": {
			reason:      "An OAuth client is no auth key.",
			annotations: map[string]string{oldKeyID: "client"},
		},
		"APIToken": {
			reason:      "An API token is no auth key.",
			annotations: map[string]string{oldKeyID: "token"},
		},
		"FederatedIdentity": {
			reason:      "A federated identity is no auth key.",
			annotations: map[string]string{oldKeyID: "federated"},
		},
		"KeyPath": {
			reason:      "An ID must not change the path of a request.",
			annotations: map[string]string{oldKeyID: "../device/laptop"},
		},
		"Tags": {
			reason:      "The tags of the key decide which devices can have used it.",
			annotations: map[string]string{oldTags: "tag:db"},
			named:       "db",
		},
		"Issued": {
			reason:      "So does the time when it was issued.",
			annotations: map[string]string{oldIssued: "2020-01-01T00:00:00Z"},
			named:       "older",
		},
	}
	for name, tc := range cases {
		for title, recorded := range map[string]bool{"": true, "WithoutRecord": false} {
			t.Run(name+title, func(t *testing.T) {
				w := newWorld(t)
				w.settle()
				if recorded {
					w.api.use("k1", "n1", testTime)
					w.write(map[string]string{"device_id": "n1"})
					w.settle()
					// The last key is younger than the device that looks like the machine's.
					w.at = testTime.Add(10 * time.Minute)
					delete(w.api.devices, "n1")
					w.write(map[string]string{"device_id": "n1", "reissue_authkey": ""})
					w.settle()
					w.write(map[string]string{})
					w.api.use("k2", "n2", w.at)
					w.write(map[string]string{"device_id": "n2"})
					w.settle()
				} else {
					w.unrecord()
				}
				foreign(w)
				devices, keys := w.devices(), w.others()
				w.forge(tc.annotations)
				if tc.named != "" && recorded {
					w.write(map[string]string{"device_id": tc.named})
				}
				w.settle()
				if diff := cmp.Diff(devices, w.devices()); diff != "" {
					t.Errorf("\n%s\ndevices before the deletion: -want, +got:\n%s", tc.reason, diff)
				}
				if id := meta.NodeIDOf(w.mg); id != "" && id != "n2" {
					t.Errorf("\n%s\nthe device %q became the machine's", tc.reason, id)
				}
				w.delete()
				w.settle()
				want := []string{"db", "laptop", "older"}
				if diff := cmp.Diff(want, w.devices()); diff != "" {
					t.Errorf("\n%s\ndevices: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(keys, w.others()); diff != "" {
					t.Errorf("\n%s\nkeys of others: -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// others returns the IDs of the keys that are not the machine's.
func (w *world) others() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.api.keys)), func(id string) bool { return id == "k1" || id == "k2" })
}

// TestOldRecord upgrades Machines whose record is on the config Secret. Only what the API confirms is
// adopted, nothing is left behind when the Machine is deleted, and devices of others stay.
func TestOldRecord(t *testing.T) {
	own := keyRecord{ID: "k1", Issued: testTime, Tags: []string{"tag:k8s"}}
	cases := map[string]struct {
		reason string
		setup  func(w *world)

		// hints are annotations of the Secret besides the usual ones.
		hints map[string]string

		// want is the key in the adopted record, and tailnet the adopted tailnet.
		want    keyRecord
		tailnet string

		// remaining are the devices after the deletion.
		remaining []string
	}{
		"Waits": {
			reason: "A key that waits for its node is adopted, and revoked in the end.",
			setup:  func(*world) {},
			want:   own,
		},
		"Joined": {
			reason: "A used key is adopted with what the API says about it, and not with what the Secret says.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.write(map[string]string{"device_id": "n1"})
				w.settle()
			},
			hints:   map[string]string{oldIssued: "2020-01-01T00:00:00Z", oldTags: "tag:db", oldTailnet: "tail1234.ts.net"},
			want:    own,
			tailnet: "tail1234.ts.net",
		},
		"KeyGone": {
			reason: "A key that the API no longer has is not recorded. The recorded device stays the machine's.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.write(map[string]string{"device_id": "n1"})
				w.settle()
				delete(w.api.keys, "k1")
			},
			tailnet: "tail1234.ts.net",
		},
		"StateLost": {
			reason: "A device of the adopted key is found without the state.",
			setup: func(w *world) {
				w.api.use("k1", "n1", testTime)
				w.api.offline("n1")
				w.write(map[string]string{})
			},
			want: own,
		},
		"RevokedUnused": {
			reason: "An earlier version had revoked the key, which no node had used.",
			setup: func(w *world) {
				w.api.use("k1", "namesake", testTime)
				w.api.offline("namesake")
			},
			hints:     map[string]string{oldUnused: "k1"},
			want:      keyRecord{ID: "k1", Issued: testTime, Tags: []string{"tag:k8s"}, Unused: true},
			remaining: []string{"namesake"},
		},
		"ForgedUnused": {
			reason: "A valid key is revoked, whatever the Secret says.",
			setup:  func(*world) {},
			hints:  map[string]string{oldUnused: "k1"},
			want:   own,
		},
	}
	for name, tc := range cases {
		for _, deleted := range []bool{false, true} {
			title := name
			if deleted {
				title += "Deleted"
			}
			t.Run(title, func(t *testing.T) {
				w := newWorld(t)
				w.settle()
				tc.setup(w)
				w.unrecord()
				w.forge(map[string]string{oldKeyID: "k1", oldIssued: testTime.Format(time.RFC3339), oldTags: "tag:k8s"})
				w.forge(tc.hints)
				if !deleted {
					w.settle()
					if diff := cmp.Diff(tc.want, w.record().Key); diff != "" || !w.record().exists() {
						t.Errorf("\n%s\nrecord: -want, +got:\n%s", tc.reason, diff)
					}
					if got := w.mg.GetAnnotations()[annotationTailnet]; got != tc.tailnet {
						t.Errorf("\n%s\nwant the tailnet %q, got %q", tc.reason, tc.tailnet, got)
					}
				}
				w.delete()
				w.settle()
				if diff := cmp.Diff(tc.remaining, w.devices()); diff != "" {
					t.Errorf("\n%s\ndevices: -want, +got:\n%s", tc.reason, diff)
				}
				w.api.devices = nil
				w.empty()
			})
		}
	}
}

// TestCrashAfterKey loses the provider after it created a key and before the key is recorded, or
// before the key is in the config Secret.
func TestCrashAfterKey(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason string
		fail   interceptor.Funcs
	}{
		"BeforeRecord": {
			reason: "A key without a record is found by its description.",
			fail: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errBoom
			}},
		},
		"BeforeConfig": {
			reason: "A recorded key that no node got is revoked.",
			fail: interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
				return errBoom
			}},
		},
	}
	for name, tc := range cases {
		for _, deleted := range []bool{false, true} {
			title := name
			if deleted {
				title += "Deleted"
			}
			t.Run(title, func(t *testing.T) {
				w := newWorld(t)
				whole := w.kube
				w.kube = interceptor.NewClient(whole, tc.fail)
				if _, err := w.external().Update(t.Context(), w.mg); !errors.Is(err, errBoom) || w.api.minted != 1 {
					t.Fatalf("\n%s\nwant a key and an error, got %d, %v", tc.reason, w.api.minted, err)
				}
				w.kube = whole
				// A device of another cluster looks like the machine's.
				w.api.devices["namesake"] = victim(func(d *tailscale.Device) {
					d.NodeID, d.Created.Time, d.ConnectedToControl = "namesake", testTime, false
				})
				if deleted {
					w.delete()
					w.settle()
					if diff := cmp.Diff([]string{"namesake"}, w.devices()); diff != "" {
						t.Errorf("\n%s\ndevices: -want, +got:\n%s", tc.reason, diff)
					}
					w.api.devices = nil
					w.empty()
					return
				}
				w.at = w.at.Add(reissueInterval)
				w.settle()
				if diff := cmp.Diff([]string{"k2"}, slices.Sorted(maps.Keys(w.api.keys))); diff != "" || w.authKey() != "tskey-auth-k2" || w.record().Key.ID != "k2" {
					t.Errorf("\n%s\nwant one key, in the config and in the record %v, got: -want, +got:\n%s", tc.reason, w.record(), diff)
				}
			})
		}
	}
}

// TestForgedLogin shows that a Secret which says that another machine logged in costs no machine its
// device.
func TestForgedLogin(t *testing.T) {
	w := newSimWorld(t)
	w.run()
	id, _ := w.device()
	w.cut()
	w.step(2 * time.Hour)
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "other", Name: "x", UID: "other", Labels: map[string]string{meta.LabelSecretType: meta.SecretTypeConfig},
		Annotations: map[string]string{
			"gateway.tailscale.com/login": `{"loggedIn":"` + w.at.Add(-time.Hour).UTC().Format(time.RFC3339) + `"}`,
			oldTailnet:                    w.tailnet(),
		},
	}}
	if err := w.kube.Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	w.step(40 * time.Minute)
	if current, keys := w.device(); current != id || keys != 0 {
		t.Errorf("device %s, want %s, and no key, got %d", current, id, keys)
	}
}

// tailnet returns the tailnet of the machine's device.
func (w *simWorld) tailnet() string {
	w.t.Helper()
	id, _ := w.device()
	d, err := w.api.devices.Device(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return tailnetOf(d)
}
