// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

const finalizer = "test/finalizer"

func TestReconcile(t *testing.T) {
	others := map[string][]string{"theirs.example": {"10.9.9.9"}}
	cases := map[string]struct {
		reason   string
		start    fakeAPI
		objects  []*v1alpha1.DNS
		want     tailscale.DNS
		override bool
		ready    map[string]xpv2.ConditionReason
		writes   []string
	}{
		"Everything": {
			reason:   "All parts are set, and other domains stay.",
			start:    fakeAPI{DNS: tailscale.DNS{SplitDNS: others}},
			objects:  []*v1alpha1.DNS{object("a", 0, everything())},
			want:     tailscale.DNS{Nameservers: []string{"1.1.1.1", "2606:4700:4700::1111"}, SearchPaths: []string{"a.example", "b.example"}, SplitDNS: map[string][]string{"corp.example": {"10.0.0.1"}, "theirs.example": {"10.9.9.9"}}, MagicDNS: true},
			override: true,
			ready:    map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
			writes:   []string{"PatchSplitDNS", "SetSearchPaths", "SetNameservers", "SetOverrideLocalDNS", "SetMagicDNS"},
		},
		"OnlyWhatIsNamed": {
			reason:  "Parts that are not set are left unchanged.",
			start:   fakeAPI{DNS: tailscale.DNS{Nameservers: []string{"9.9.9.9"}, SearchPaths: []string{"x"}, SplitDNS: others, MagicDNS: true}},
			objects: []*v1alpha1.DNS{object("a", 0, split("corp.example"))},
			want:    tailscale.DNS{Nameservers: []string{"9.9.9.9"}, SearchPaths: []string{"x"}, SplitDNS: map[string][]string{"corp.example": {"10.0.0.1"}, "theirs.example": {"10.9.9.9"}}, MagicDNS: true},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
			writes:  []string{"PatchSplitDNS"},
		},
		"ForeignRefused": {
			reason:  "Parts that another client set are not changed.",
			start:   fakeAPI{DNS: tailscale.DNS{Nameservers: []string{"9.9.9.9"}, SplitDNS: others}},
			objects: []*v1alpha1.DNS{object("a", 0, nameservers("1.1.1.1")), object("b", 0, split("theirs.example"))},
			want:    tailscale.DNS{Nameservers: []string{"9.9.9.9"}, SplitDNS: others},
			ready:   map[string]xpv2.ConditionReason{"a": meta.ReasonForeignObject, "b": meta.ReasonForeignObject},
		},
		"ForeignAdopted": {
			reason:  "The adoption policy takes over a part that another client set.",
			start:   fakeAPI{DNS: tailscale.DNS{Nameservers: []string{"9.9.9.9"}}},
			objects: []*v1alpha1.DNS{object("a", 0, adopting(nameservers("1.1.1.1")))},
			want:    tailscale.DNS{Nameservers: []string{"1.1.1.1"}},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
			writes:  []string{"SetNameservers"},
		},
		"SameIsOurs": {
			reason:  "A part that matches the spec needs no write and no adoption.",
			start:   fakeAPI{DNS: tailscale.DNS{Nameservers: []string{"1.1.1.1"}}},
			objects: []*v1alpha1.DNS{object("a", 0, nameservers("1.1.1.1"))},
			want:    tailscale.DNS{Nameservers: []string{"1.1.1.1"}},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
		},
		"OlderWins": {
			reason:  "The older of two objects owns the part; the younger owns its other parts.",
			objects: []*v1alpha1.DNS{object("young", 0, split("corp.example", "young.example")), object("old", time.Hour, split("corp.example"))},
			want:    tailscale.DNS{SplitDNS: map[string][]string{"corp.example": {"10.0.0.1"}, "young.example": {"10.0.0.1"}}},
			ready:   map[string]xpv2.ConditionReason{"young": meta.ReasonConflict, "old": xpv2.ReasonAvailable},
			writes:  []string{"PatchSplitDNS", "PatchSplitDNS"},
		},
		"ObserveOnly": {
			reason:  "An object that may only observe writes nothing, and contends for nothing.",
			objects: []*v1alpha1.DNS{object("a", 0, nameservers("1.1.1.1")), object("old", time.Hour, nameservers("8.8.8.8"), policies(xpv2.ManagementActionObserve))},
			want:    tailscale.DNS{Nameservers: []string{"1.1.1.1"}},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable, "old": xpv2.ReasonAvailable},
			writes:  []string{"SetNameservers"},
		},
		"CreateOnly": {
			reason:  "An object without the Update policy is written once.",
			objects: []*v1alpha1.DNS{object("a", 0, nameservers("1.1.1.1"), policies(xpv2.ManagementActionObserve, xpv2.ManagementActionCreate))},
			want:    tailscale.DNS{Nameservers: []string{"1.1.1.1"}},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
			writes:  []string{"SetNameservers"},
		},
		"NoDevicesScope": {
			reason:  "A credential with only DNS access is enough.",
			start:   fakeAPI{refuse: map[string]error{"Domain": errBoom}},
			objects: []*v1alpha1.DNS{object("a", 0, nameservers("1.1.1.1"))},
			want:    tailscale.DNS{Nameservers: []string{"1.1.1.1"}},
			ready:   map[string]xpv2.ConditionReason{"a": xpv2.ReasonAvailable},
			writes:  []string{"SetNameservers"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := tc.start
			api.SplitDNS = maps.Clone(api.SplitDNS)
			c := newCluster(t, &api, tc.objects...)
			synced := c.settle(t, slices.Sorted(maps.Keys(tc.ready))...)
			if diff := cmp.Diff(tc.want, api.state(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nDNS: -want, +got:\n%s", tc.reason, diff)
			}
			if api.override != tc.override {
				t.Errorf("\n%s\noverrideLocalDNS: got %t", tc.reason, api.override)
			}
			if diff := cmp.Diff(tc.writes, api.writes); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			for n, want := range tc.ready {
				cond := c.get(t, n).GetCondition(xpv2.TypeReady)
				if cond.Reason != want {
					t.Errorf("\n%s\n%s: want reason %q, got %q: %s", tc.reason, n, want, cond.Reason, cond.Message)
				}
				if (synced[n] == nil) != (want == xpv2.ReasonAvailable) {
					t.Errorf("\n%s\n%s: Synced: %v", tc.reason, n, synced[n])
				}
			}
		})
	}
}

func TestDriftUpdateDelete(t *testing.T) {
	start := tailscale.DNS{SplitDNS: map[string][]string{"theirs.example": {"10.9.9.9"}}, MagicDNS: true}
	api := &fakeAPI{DNS: start}
	api.SplitDNS = maps.Clone(start.SplitDNS)
	c := newCluster(t, api, object("a", 0, v1alpha1.DNSParameters{
		Nameservers: &v1alpha1.DNSNameservers{Addresses: []string{"1.1.1.1"}},
		SearchPaths: &[]string{"a.example"},
		SplitDNS:    split("one.example", "two.example").SplitDNS,
	}))
	check := func(step string, want tailscale.DNS) {
		t.Helper()
		if errs := c.settle(t, "a"); errs["a"] != nil {
			t.Errorf("%s: %v", step, errs["a"])
		}
		if diff := cmp.Diff(want, api.state(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", step, diff)
		}
	}
	want := tailscale.DNS{
		Nameservers: []string{"1.1.1.1"}, SearchPaths: []string{"a.example"}, MagicDNS: true,
		SplitDNS: map[string][]string{"one.example": {"10.0.0.1"}, "two.example": {"10.0.0.1"}, "theirs.example": {"10.9.9.9"}},
	}
	check("Create", want)

	api.Nameservers, api.SplitDNS["one.example"] = []string{"9.9.9.9"}, []string{"10.6.6.6"}
	check("DriftCorrected", want)

	writes := len(api.writes)
	check("AtRest", want)
	if len(api.writes) != writes {
		t.Errorf("AtRest: wrote %v", api.writes[writes:])
	}

	mg := c.get(t, "a")
	mg.Spec.ForProvider.SplitDNS = mg.Spec.ForProvider.SplitDNS[:1]
	if err := c.kube.Update(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	delete(want.SplitDNS, "two.example")
	check("RemovedDomainGoes", want)

	// Another client changes the search paths after the last poll: they no longer belong to the
	// object.
	api.SearchPaths = []string{"theirs"}
	c.remove(t, "a")
	start.SearchPaths = []string{"theirs"}
	check("Deleted", start)
	if c.get(t, "a").GetName() != "" {
		t.Error("Deleted: the object still exists")
	}
}

func TestReleased(t *testing.T) {
	api := &fakeAPI{}
	c := newCluster(t, api, object("old", time.Hour, nameservers("1.1.1.1")), object("young", 0, nameservers("8.8.8.8")))
	c.settle(t, "young", "old")
	c.remove(t, "old")
	c.settle(t, "old", "young")
	if diff := cmp.Diff([]string{"8.8.8.8"}, api.Nameservers); diff != "" {
		t.Errorf("the younger object must get the parts of the deleted older one: -want, +got:\n%s", diff)
	}
	// An older object that begins to want a part takes it over from the younger one, whose deletion
	// does not remove it.
	c = newCluster(t, api, object("young", 0, adopting(nameservers("8.8.8.8"))), object("old", time.Hour, split("corp.example")))
	c.settle(t, "young", "old")
	old := c.get(t, "old")
	old.Spec.ForProvider.Nameservers = &v1alpha1.DNSNameservers{Addresses: []string{"8.8.8.8", "8.8.4.4"}}
	if err := c.kube.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	c.settle(t, "young", "old")
	c.remove(t, "young")
	c.settle(t, "young", "old")
	if diff := cmp.Diff([]string{"8.8.8.8", "8.8.4.4"}, api.Nameservers); diff != "" {
		t.Errorf("the older object must have the part: -want, +got:\n%s", diff)
	}
}

// TestFaults makes each write fail once, before and after its effect, while an object is created
// and deleted. The controller must recover, and leave no parts.
func TestFaults(t *testing.T) {
	for _, call := range []string{"DNS", "OverrideLocalDNS", "PatchSplitDNS", "SetSearchPaths", "SetNameservers", "SetOverrideLocalDNS", "SetMagicDNS"} {
		for _, lost := range []bool{false, true} {
			name := call + "Refused"
			if lost {
				name = call + "ReplyLost"
			}
			t.Run(name, func(t *testing.T) {
				api := &fakeAPI{DNS: tailscale.DNS{MagicDNS: true, SplitDNS: map[string][]string{}}}
				p := everything()
				p.Preferences = nil
				c := newCluster(t, api, object("a", 0, p))
				fail := func() {
					api.refuse, api.loseReply = map[string]error{call: errBoom}, nil
					if lost {
						api.refuse, api.loseReply = nil, map[string]error{call: errBoom}
					}
					for range 2 {
						if err := c.reconcile(t, "a"); err != nil && !errors.Is(err, errBoom) {
							t.Errorf("want an error of the call, got: %v", err)
						}
					}
					api.refuse, api.loseReply = nil, nil
				}
				fail()
				if errs := c.settle(t, "a"); errs["a"] != nil || len(api.Nameservers) != 2 || len(api.SplitDNS) != 1 || !api.override {
					t.Errorf("the object does not recover: %v, %+v", errs["a"], api.state())
				}
				c.remove(t, "a")
				fail()
				c.settle(t, "a")
				if diff := cmp.Diff(tailscale.DNS{MagicDNS: true}, api.state(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("settings remain or are lost: -want, +got:\n%s", diff)
				}
				if c.get(t, "a").GetName() != "" {
					t.Error("the object still exists")
				}
			})
		}
	}
}

func TestStatus(t *testing.T) {
	api := &fakeAPI{DNS: tailscale.DNS{Nameservers: []string{"9.9.9.9"}, SearchPaths: []string{"x"}, MagicDNS: true, SplitDNS: map[string][]string{"b": {"1.1.1.1"}, "a": {"2.2.2.2"}}}}
	c := newCluster(t, api, object("a", 0, nameservers("1.1.1.1"), policies(xpv2.ManagementActionObserve)))
	c.settle(t, "a")
	enabled := true
	want := v1alpha1.DNSObservation{
		Tailnet: "tail1.ts.net", Nameservers: []string{"9.9.9.9"}, SearchPaths: []string{"x"}, MagicDNS: &enabled,
		SplitDNS: []v1alpha1.SplitDNSObservation{{Domain: "a", Nameservers: []string{"2.2.2.2"}}, {Domain: "b", Nameservers: []string{"1.1.1.1"}}},
	}
	if diff := cmp.Diff(want, c.get(t, "a").Status.AtProvider); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
}
