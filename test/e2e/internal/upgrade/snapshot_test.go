// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func snapshot(change func(*Snapshot)) Snapshot {
	s := Snapshot{
		Objects: map[string]Object{
			"TailscaleServices shop/web": {
				UID:        "1",
				Spec:       map[string]any{"ports": []any{"tcp:80"}},
				Conditions: map[string]string{"Ready": "True/Available", "Conflict": "False/SettingsAgree"},
				Identity:   map[string]any{"status.addresses": []any{"100.64.0.1"}},
			},
			"Secret shop/web-0": {UID: "2"},
		},
		Tailnets: map[string]Tailnet{"one": {
			Devices:  map[string]Device{"n1": {Name: "web-0", Created: "monday", NodeKey: "k1", Addresses: []string{"100.64.0.9"}}},
			Services: map[string][]string{"svc:web": {"100.64.0.1"}},
			Keys:     map[string]string{"a": "monday"},
			KeysMade: 3,
		}},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// web changes the service.
func web(change func(*Object)) func(*Snapshot) {
	return func(s *Snapshot) {
		o := s.Objects["TailscaleServices shop/web"]
		change(&o)
		s.Objects["TailscaleServices shop/web"] = o
	}
}

// tailnet changes the tailnet.
func tailnet(change func(*Tailnet)) func(*Snapshot) {
	return func(s *Snapshot) {
		t := s.Tailnets["one"]
		change(&t)
		s.Tailnets["one"] = t
	}
}

func TestDifferences(t *testing.T) {
	const service = "TailscaleServices shop/web: "
	cases := map[string]struct {
		reason string
		change func(*Snapshot)
		newer  []string
		same   []string // The default is newer.
	}{
		"Equal": {reason: "Nothing has changed."},
		"Gone": {
			reason: "An object that is gone is a difference to any version.",
			change: func(s *Snapshot) { delete(s.Objects, "Secret shop/web-0") },
			newer:  []string{"Secret shop/web-0 is gone"},
		},
		"Added": {
			reason: "A newer version may add objects, and removes them when it is rolled back.",
			change: func(s *Snapshot) { s.Objects["Service shop/web-2"] = Object{} },
			same:   []string{"Service shop/web-2 is left behind"},
		},
		"CreatedAgain": {
			reason: "An object of another UID is not the same.",
			change: func(s *Snapshot) { s.Objects["Secret shop/web-0"] = Object{UID: "3"} },
			newer:  []string{"Secret shop/web-0: another object has its name"},
		},
		"FieldAdded": {
			reason: "A newer version may add fields.",
			change: web(func(o *Object) { o.Spec = map[string]any{"ports": []any{"tcp:80"}, "tls": true} }),
			same:   []string{service + "the spec was map[ports:[tcp:80]] and is map[ports:[tcp:80] tls:true]"},
		},
		"FieldChanged": {
			reason: "No version may change what users wrote.",
			change: web(func(o *Object) { o.Spec = map[string]any{"ports": []any{"tcp:81"}} }),
			newer:  []string{service + "the spec was map[ports:[tcp:80]] and is map[ports:[tcp:81]]"},
		},
		"NotReady": {
			reason: "A condition that is True stays True.",
			change: web(func(o *Object) {
				o.Conditions = map[string]string{"Ready": "False/Creating", "Conflict": "False/SettingsAgree"}
			}),
			newer: []string{service + `Ready was True and is "False"`},
			same:  []string{service + `Ready was True/Available and is "False/Creating"`},
		},
		"Reason": {
			reason: "A newer version may have other reasons, and other conditions that are not True.",
			change: web(func(o *Object) { o.Conditions = map[string]string{"Ready": "True/Fine", "New": "False/No"} }),
			same: []string{
				service + `Conflict was False/SettingsAgree and is ""`,
				service + `Ready was True/Available and is "True/Fine"`,
				service + "condition New is left behind",
			},
		},
		"Address": {
			reason: "Addresses stay.",
			change: web(func(o *Object) { o.Identity = map[string]any{"status.addresses": []any{"100.64.0.2"}} }),
			newer:  []string{service + "status.addresses was [100.64.0.1] and is [100.64.0.2]"},
		},
		"RegisteredAgain": {
			reason: "A device with another node key logged in again.",
			change: tailnet(func(n *Tailnet) {
				n.Devices = map[string]Device{"n1": {Name: "web-0", Created: "monday", NodeKey: "k2", Addresses: []string{"100.64.0.9"}}}
			}),
			newer: []string{"tailnet one: device n1 (web-0) registered again"},
		},
		"Renamed": {
			reason: "Names and addresses of devices stay.",
			change: tailnet(func(n *Tailnet) {
				n.Devices = map[string]Device{"n1": {Name: "web-1", Created: "monday", NodeKey: "k1", Addresses: []string{"100.64.0.8"}}}
			}),
			newer: []string{"tailnet one: device n1 was web-0 at [100.64.0.9] and is web-1 at [100.64.0.8]"},
		},
		"Replaced": {
			reason: "Another device, service and key are left behind in the tailnet.",
			change: tailnet(func(n *Tailnet) {
				n.Devices = map[string]Device{"n2": {Name: "web-0"}}
				n.Services = map[string][]string{"svc:web": {"100.64.0.2"}, "svc:api": nil}
				n.Keys = map[string]string{"a": "monday", "b": "tuesday"}
				n.KeysMade = 4
			}),
			newer: []string{
				"tailnet one: 1 keys were made",
				"tailnet one: device n1 (web-0) is gone",
				"tailnet one: device n2 (web-0) is new",
				"tailnet one: svc:api is new",
				"tailnet one: svc:web had the addresses [100.64.0.1] and has [100.64.0.2]",
				"tailnet one: the keys were map[a:monday] and are map[a:monday b:tuesday]",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.same == nil {
				tc.same = tc.newer
			}
			for s, want := range map[Strictness][]string{Newer: tc.newer, Same: tc.same} {
				if diff := cmp.Diff(want, Differences(snapshot(nil), snapshot(tc.change), s)); diff != "" {
					t.Errorf("\n%s\nDifferences(..., %d): -want, +got:\n%s", tc.reason, s, diff)
				}
			}
		})
	}
}

const objects = `{"kind": "List", "apiVersion": "v1", "items": [{
  "apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleServices",
  "metadata": {"namespace": "shop", "name": "web", "uid": "1"},
  "spec": {"crossplane": {"compositionRevisionRef": {"name": "x-1"}}, "vipService": {"ports": ["tcp:80"]}},
  "status": {
    "conditions": [{"type": "Ready", "status": "False", "reason": "Creating", "message": "soon"}],
    "vipServiceStatus": {"addresses": ["100.64.0.1"], "dnsName": "web.example.ts.net"}
  }
}, {
  "apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleTailnet", "metadata": {"name": "shop", "uid": "2"}
}]}`

func TestAddObjects(t *testing.T) {
	vip := map[string]any{"status.vipServiceStatus.addresses": []any{"100.64.0.1"}, "status.vipServiceStatus.dnsName": "web.example.ts.net"}
	cases := map[string]struct {
		reason string
		detail Detail
		want   map[string]Object
	}{
		"Presence": {reason: "Only the names.", detail: Presence, want: map[string]Object{"TailscaleServices shop/web": {}, "TailscaleTailnet shop": {}}},
		"UID":      {reason: "The UID and addresses.", detail: UID, want: map[string]Object{"TailscaleServices shop/web": {UID: "1", Identity: vip}, "TailscaleTailnet shop": {UID: "2"}}},
		"Everything": {
			reason: "The spec without Crossplane's fields, and the conditions without messages.",
			detail: Everything,
			want: map[string]Object{
				"TailscaleServices shop/web": {
					UID: "1", Identity: vip,
					Spec:       map[string]any{"vipService": map[string]any{"ports": []any{"tcp:80"}}},
					Conditions: map[string]string{"Ready": "False/Creating"},
				},
				"TailscaleTailnet shop": {UID: "2", Conditions: map[string]string{}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{}
			if err := s.AddObjects([]byte(objects), tc.detail); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Objects); diff != "" {
				t.Errorf("\n%s\nAddObjects(...): -want, +got:\n%s", tc.reason, diff)
			}
			want := map[Detail][]string{Everything: {"TailscaleServices shop/web: False/Creating"}}[tc.detail]
			if diff := cmp.Diff(want, s.NotReady()); diff != "" {
				t.Errorf("\nNotReady(): -want, +got:\n%s", diff)
			}
		})
	}
	if err := (&Snapshot{}).AddObjects([]byte("no list"), UID); err == nil {
		t.Error("AddObjects(...): a text that is no list has no error")
	}
}
