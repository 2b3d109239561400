// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

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

func (f *fakeAPI) write(name string, fn func()) error {
	if err := f.refuse[name]; err != nil {
		return err
	}
	fn()
	f.writes = append(f.writes, name)
	return f.loseReply[name]
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return "tail1.ts.net", f.refuse["Domain"] }

func (f *fakeAPI) state() tailscale.DNS {
	d := f.DNS
	d.SplitDNS = maps.Clone(d.SplitDNS)
	return d
}

// A fakeDNS has the calls of DNS.
type fakeDNS struct{ *fakeAPI }

// areas returns the tailnet's API.
func (f *fakeAPI) areas() api { return api{dns: fakeDNS{f}, tailnet: f} }

func (f fakeDNS) DNS(context.Context, tailscale.Staleness) (tailscale.DNS, error) {
	return f.state(), f.refuse["DNS"]
}

func (f fakeDNS) OverrideLocalDNS(context.Context, tailscale.Staleness) (bool, error) {
	return f.override, f.refuse["OverrideLocalDNS"]
}

func (f fakeDNS) SetNameservers(_ context.Context, a []string) error {
	return f.write("SetNameservers", func() {
		f.Nameservers = a
		// Like Tailscale.
		if len(a) == 0 {
			f.MagicDNS = false
		}
	})
}

func (f fakeDNS) SetSearchPaths(_ context.Context, p []string) error {
	return f.write("SetSearchPaths", func() { f.SearchPaths = p })
}

func (f fakeDNS) PatchSplitDNS(_ context.Context, domains map[string][]string) error {
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

func (f fakeDNS) SetMagicDNS(_ context.Context, enabled bool) error {
	if f.strict && enabled && len(f.Nameservers) == 0 {
		return &tailscale.Error{Class: tailscale.ClassInvalid, Status: 400, Message: "need at least one nameserver to enable MagicDNS"}
	}
	return f.write("SetMagicDNS", func() { f.MagicDNS = enabled })
}

func (f fakeDNS) SetOverrideLocalDNS(_ context.Context, enabled bool) error {
	return f.write("SetOverrideLocalDNS", func() { f.override = enabled })
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
	e := &external{api: c.api.areas(), kube: c.kube, live: c.kube, events: event.NewNopRecorder()}
	exists, err := false, error(nil)
	if !xpmeta.WasDeleted(mg) || annotationRecord.Exists(mg) {
		o, oerr := e.Observe(ctx, mg)
		exists, err = o.ResourceExists, oerr
		switch {
		case err != nil:
		case xpmeta.WasDeleted(mg) && exists:
			_, err = e.Delete(ctx, mg)
		case xpmeta.WasDeleted(mg):
		case !exists && contention.Writes(mg):
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
	enabled := true
	return v1alpha1.DNSParameters{
		Nameservers: &v1alpha1.DNSNameservers{Addresses: []string{"1.1.1.1", "2606:4700:4700:0::1111"}, OverrideLocalDNS: &enabled},
		SearchPaths: &[]string{"a.example", "b.example"},
		SplitDNS:    split("corp.example").SplitDNS,
		Preferences: &v1alpha1.DNSPreferences{MagicDNS: true},
	}
}

func adopting(p v1alpha1.DNSParameters) v1alpha1.DNSParameters {
	p.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
	return p
}
