// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/claims"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

const finalizer = "test/finalizer"

// A fakeAPI holds a tailnet's DNS settings in memory.
type fakeAPI struct {
	tailscale.DNS
	override bool

	// strict refuses MagicDNS without nameservers, as Tailscale documents.
	strict bool

	// refuse and loseReply are the errors of calls by name: before or after they took effect.
	refuse, loseReply map[string]error

	writes []string
}

func (f *fakeAPI) write(name string, do func()) error {
	if err := f.refuse[name]; err != nil {
		return err
	}
	do()
	f.writes = append(f.writes, name)
	return f.loseReply[name]
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return "tail1.ts.net", f.refuse["Domain"] }

func (f *fakeAPI) state() tailscale.DNS {
	d := f.DNS
	d.SplitDNS = maps.Clone(d.SplitDNS)
	return d
}

type fakeTailnet struct{ *fakeAPI }

func (f fakeTailnet) DNS(context.Context, tailscale.Staleness) (tailscale.DNS, error) {
	return f.state(), f.refuse["DNS"]
}

func (f fakeTailnet) OverrideLocalDNS(context.Context, tailscale.Staleness) (bool, error) {
	return f.override, f.refuse["OverrideLocalDNS"]
}

func (f fakeTailnet) SetNameservers(_ context.Context, a []string) error {
	return f.write("SetNameservers", func() {
		f.Nameservers = a
		// Like Tailscale.
		if len(a) == 0 {
			f.MagicDNS = false
		}
	})
}

func (f fakeTailnet) SetSearchPaths(_ context.Context, p []string) error {
	return f.write("SetSearchPaths", func() { f.SearchPaths = p })
}

func (f fakeTailnet) PatchSplitDNS(_ context.Context, domains map[string][]string) error {
	return f.write("PatchSplitDNS", func() {
		if f.SplitDNS == nil {
			f.SplitDNS = map[string][]string{}
		}
		for d, ns := range domains {
			f.SplitDNS[d] = ns
			if len(ns) == 0 {
				delete(f.SplitDNS, d)
			}
		}
	})
}

func (f fakeTailnet) SetMagicDNS(_ context.Context, on bool) error {
	if f.strict && on && len(f.Nameservers) == 0 {
		return &tailscale.Error{Class: tailscale.ClassInvalid, Status: 400, Message: "need at least one nameserver to enable MagicDNS"}
	}
	return f.write("SetMagicDNS", func() { f.MagicDNS = on })
}

func (f fakeTailnet) SetOverrideLocalDNS(_ context.Context, on bool) error {
	return f.write("SetOverrideLocalDNS", func() { f.override = on })
}

// A cluster runs an external client like the managed reconciler.
type cluster struct {
	kube client.Client
	api  *fakeAPI
}

func newCluster(t *testing.T, api *fakeAPI, objects ...*v1alpha1.DNS) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.DNS{})
	for _, o := range objects {
		b.WithObjects(o.DeepCopy())
	}
	return &cluster{kube: b.Build(), api: api}
}

func (c *cluster) get(t *testing.T, name string) *v1alpha1.DNS {
	t.Helper()
	mg := &v1alpha1.DNS{}
	if err := c.kube.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, mg); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return mg
}

// reconcile runs one reconciliation. It returns the error that the managed reconciler would report
// as Synced.
func (c *cluster) reconcile(t *testing.T, name string) error {
	t.Helper()
	ctx := t.Context()
	mg := c.get(t, name)
	if mg.GetName() == "" {
		return nil
	}
	e := &external{api: fakeTailnet{c.api}, kube: c.kube, live: c.kube, events: event.NewNopRecorder()}
	exists, err := false, error(nil)
	if !xpmeta.WasDeleted(mg) || annotationRecord.Exists(mg) {
		o, oerr := e.Observe(ctx, mg)
		exists, err = o.ResourceExists, oerr
		switch {
		case err != nil:
		case xpmeta.WasDeleted(mg) && exists:
			_, err = e.Delete(ctx, mg)
		case xpmeta.WasDeleted(mg):
		case !exists && claims.Writes(mg):
			if _, err = e.Create(ctx, mg); err == nil {
				xpmeta.SetExternalCreateSucceeded(mg, time.Now())
				c.annotate(t, mg)
			}
		case !o.ResourceUpToDate && !slices.Contains(mg.GetManagementPolicies(), xpv2.ManagementActionCreate):
			_, err = e.Update(ctx, mg)
		}
	}
	if xpmeta.WasDeleted(mg) && !exists && err == nil {
		mg.SetFinalizers(nil)
		if err := c.kube.Update(ctx, mg); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	if serr := c.kube.Status().Update(ctx, mg); serr != nil {
		t.Fatalf("the status cannot be written after: %v: %v", err, serr)
	}
	return err
}

// annotate writes an object's annotations.
func (c *cluster) annotate(t *testing.T, mg *v1alpha1.DNS) {
	t.Helper()
	o := mg.DeepCopy()
	if err := c.kube.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	mg.SetResourceVersion(o.GetResourceVersion())
}

// settle reconciles all objects until nothing changes any more.
func (c *cluster) settle(t *testing.T, names ...string) map[string]error {
	t.Helper()
	out := map[string]error{}
	for range 4 {
		for _, n := range names {
			out[n] = c.reconcile(t, n)
		}
	}
	return out
}

func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.kube.Delete(t.Context(), c.get(t, name)); err != nil {
		t.Fatal(err)
	}
}

func object(name string, age time.Duration, p v1alpha1.DNSParameters, change ...func(*v1alpha1.DNS)) *v1alpha1.DNS {
	mg := &v1alpha1.DNS{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Finalizers: []string{finalizer},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(-age)),
		},
		Spec: v1alpha1.DNSSpec{ForProvider: p},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"})
	for _, f := range change {
		f(mg)
	}
	return mg
}

func policies(p ...xpv2.ManagementAction) func(*v1alpha1.DNS) {
	return func(mg *v1alpha1.DNS) { mg.SetManagementPolicies(p) }
}

func nameservers(a ...string) v1alpha1.DNSParameters {
	return v1alpha1.DNSParameters{Nameservers: &v1alpha1.DNSNameservers{Addresses: a}}
}

func split(domains ...string) v1alpha1.DNSParameters {
	p := v1alpha1.DNSParameters{}
	for _, d := range domains {
		p.SplitDNS = append(p.SplitDNS, v1alpha1.SplitDNSDomain{Domain: d, Nameservers: []string{"10.0.0.1"}})
	}
	return p
}

func everything() v1alpha1.DNSParameters {
	yes := true
	return v1alpha1.DNSParameters{
		Nameservers: &v1alpha1.DNSNameservers{Addresses: []string{"1.1.1.1", "2606:4700:4700:0::1111"}, OverrideLocalDNS: &yes},
		SearchPaths: &[]string{"a.example", "b.example"},
		SplitDNS:    split("corp.example").SplitDNS,
		Preferences: &v1alpha1.DNSPreferences{MagicDNS: true},
	}
}

func adopting(p v1alpha1.DNSParameters) v1alpha1.DNSParameters {
	p.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
	return p
}

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
			reason:  "An object that may only observe writes nothing, and claims nothing.",
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
	yes := true
	want := v1alpha1.DNSObservation{
		Tailnet: "tail1.ts.net", Nameservers: []string{"9.9.9.9"}, SearchPaths: []string{"x"}, MagicDNS: &yes,
		SplitDNS: []v1alpha1.SplitDNSObservation{{Domain: "a", Nameservers: []string{"2.2.2.2"}}, {Domain: "b", Nameservers: []string{"1.1.1.1"}}},
	}
	if diff := cmp.Diff(want, c.get(t, "a").Status.AtProvider); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
}
