// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func contender(name string, age time.Duration, parts ...string) Contender {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return Contender{Name: name, UID: types.UID(name), Created: at.Add(-age), Scopes: []string{"tailnet/a"}, Parts: parts}
}

func TestLost(t *testing.T) {
	elsewhere := contender("elsewhere", time.Hour, "x")
	elsewhere.Scopes = []string{"tailnet/b"}
	unknown := contender("unknown", time.Hour, "x")
	unknown.Scopes = []string{""}
	both := contender("both", time.Hour, "x")
	both.Scopes = []string{"config/c", "tailnet/a"}
	self := contender("self", time.Minute, "x", "y")
	nowhere := self
	nowhere.Scopes = []string{""}
	cases := map[string]struct {
		reason string
		self   Contender
		others []Contender
		want   map[string]string
	}{
		"Alone":       {reason: "A contender without competitors gets all parts.", self: self, others: []Contender{self}, want: map[string]string{}},
		"OlderWins":   {reason: "The older contender gets the part that both want.", self: self, others: []Contender{contender("old", time.Hour, "x", "z")}, want: map[string]string{"x": "old"}},
		"YoungerNot":  {reason: "A younger contender takes nothing.", self: self, others: []Contender{contender("young", time.Second, "x")}, want: map[string]string{}},
		"OldestNamed": {reason: "Of several contenders the oldest gets the part.", self: self, others: []Contender{contender("old", time.Hour, "x"), contender("oldest", 2*time.Hour, "x"), contender("older", time.Hour+1, "x")}, want: map[string]string{"x": "oldest"}},
		"SameAge":     {reason: "At equal age the UID decides, so both see the same winner.", self: self, others: []Contender{contender("a", time.Minute, "x"), contender("z", time.Minute, "y")}, want: map[string]string{"x": "a"}},
		"OtherScope":  {reason: "Contenders of different tailnets do not compete.", self: self, others: []Contender{elsewhere}, want: map[string]string{}},
		"SharedScope": {reason: "One shared scope is enough.", self: self, others: []Contender{both}, want: map[string]string{"x": "both"}},
		"NoScope":     {reason: "Two unknown scopes are not a shared scope.", self: nowhere, others: []Contender{unknown}, want: map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for c, o := range Conflicts(tc.self, tc.others) {
				got[c] = o.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nLost(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNew(t *testing.T) {
	object := func(namespace, kind string) *v1alpha1.Tailnet {
		mg := &v1alpha1.Tailnet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one", UID: types.UID(namespace + kind)}}
		mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: kind, Name: "config"})
		return mg
	}
	cases := map[string]struct {
		reason string
		a, b   Contender
		want   bool
	}{
		"SameClusterConfig": {
			reason: "A cluster-wide config is the same one in each namespace.",
			a:      New(object("a", v1alpha1.ClusterProviderConfigKind), ""), b: New(object("b", v1alpha1.ClusterProviderConfigKind), ""), want: true,
		},
		"NamespacedConfigs": {
			reason: "Configs of two namespaces may share their name and mean two tailnets.",
			a:      New(object("a", v1alpha1.ProviderConfigKind), ""), b: New(object("b", v1alpha1.ProviderConfigKind), ""),
		},
		"SameTailnet": {
			reason: "Two configs may mean the same tailnet.",
			a:      New(object("a", v1alpha1.ProviderConfigKind), "t.ts.net"), b: New(object("b", v1alpha1.ProviderConfigKind), "t.ts.net"), want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SharesScope(tc.a, tc.b); got != tc.want {
				t.Errorf("\n%s\nwant the same tailnet: %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	old := contender("ns/old", time.Hour)
	cases := map[string]struct {
		reason string
		lost   map[string]Contender
		want   string
	}{
		"None": {reason: "Without a lost part, the message is empty."},
		"One": {
			reason: "The message names the holder.",
			lost:   map[string]Contender{"nameservers": old},
			want:   "Managed already: nameservers by DNS ns/old; remove it from one of the objects",
		},
		"Many": {
			reason: "A message is limited in length and sorted.",
			lost:   map[string]Contender{"d": old, "c": old, "b": old, "a": old},
			want:   "Managed already: a by DNS ns/old, b by DNS ns/old, c by DNS ns/old and 1 more; remove it from one of the objects",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Message("DNS", tc.lost)); diff != "" {
				t.Errorf("\n%s\nMessage(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
