// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

// A fakeDNS holds a tailnet's split DNS in memory.
type fakeDNS struct {
	split map[string][]string

	// stale is the result of reads until the next write.
	stale map[string][]string

	// loseReply is the error of a write that took effect.
	loseReply error

	writes int
}

// A nameless tailnet does not show its domain.
type nameless struct{}

func (nameless) Domain(context.Context) (string, error) { return "", errBoom }

// areas returns an API with calls of DNS.
func areas(dns dnsAPI) api { return api{dns: dns, tailnet: nameless{}} }

func (f *fakeDNS) DNS(context.Context, tailscale.Staleness) (tailscale.DNS, error) {
	if f.stale != nil {
		return tailscale.DNS{SplitDNS: f.stale}, nil
	}
	return tailscale.DNS{SplitDNS: maps.Clone(f.split)}, nil
}

func (f *fakeDNS) PatchSplitDNS(_ context.Context, domains map[string][]string) error {
	f.stale = nil
	f.writes++
	for d, ns := range domains {
		f.split[d] = ns
		if len(ns) == 0 {
			delete(f.split, d)
		}
	}
	return f.loseReply
}

// A cluster runs an external client like the managed reconciler. Several clusters may share a
// tailnet.
type cluster struct {
	kube client.Client
	api  *fakeDNS
}

func newCluster(t *testing.T, api *fakeDNS, objects ...client.Object) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return &cluster{kube: fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.SplitDNS{}).WithObjects(objects...).Build(), api: api}
}

func (c *cluster) get(t *testing.T, name string) *v1alpha1.SplitDNS {
	t.Helper()
	mg := &v1alpha1.SplitDNS{}
	if err := c.kube.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, mg); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return mg
}

// reconcile runs one reconciliation.
func (c *cluster) reconcile(t *testing.T, name string) {
	t.Helper()
	mg := c.get(t, name)
	if mg.GetName() == "" {
		return
	}
	e := &external{api: areas(c.api), kube: c.kube, live: c.kube}
	o, err := e.Observe(t.Context(), mg)
	switch {
	case err != nil:
	case xpmeta.WasDeleted(mg) && !o.ResourceExists:
		mg.SetFinalizers(nil)
		if err := c.kube.Update(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		return
	case xpmeta.WasDeleted(mg):
		_, err = e.Delete(t.Context(), mg)
	case !o.ResourceExists:
		if _, err = e.Create(t.Context(), mg); err == nil {
			xpmeta.SetExternalCreateSucceeded(mg, time.Now())
			cp := mg.DeepCopy()
			if err := c.kube.Update(t.Context(), cp); err != nil {
				t.Fatal(err)
			}
			mg.SetResourceVersion(cp.GetResourceVersion())
		}
	case !o.ResourceUpToDate:
		_, err = e.Update(t.Context(), mg)
	}
	if err != nil && !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	if err := c.kube.Status().Update(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
}

// settle reconciles until nothing changes any more.
func (c *cluster) settle(t *testing.T, names ...string) {
	t.Helper()
	for range 4 {
		for _, n := range names {
			c.reconcile(t, n)
		}
	}
}

func (c *cluster) remove(t *testing.T, name string) {
	t.Helper()
	if err := c.kube.Delete(t.Context(), c.get(t, name)); err != nil {
		t.Fatal(err)
	}
	c.settle(t, name)
	if c.get(t, name).GetName() != "" {
		t.Errorf("%s still exists", name)
	}
}

func object(name string, domains []string, nameservers ...string) *v1alpha1.SplitDNS {
	mg := &v1alpha1.SplitDNS{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Finalizers: []string{"test/finalizer"}},
		Spec:       v1alpha1.SplitDNSSpec{ForProvider: v1alpha1.SplitDNSParameters{Domains: domains, Nameservers: nameservers}},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"})
	return mg
}

// owner returns a DNS object that names a domain.
func owner(domain string) *v1alpha1.DNS {
	mg := &v1alpha1.DNS{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: "owner"},
		Spec: v1alpha1.DNSSpec{ForProvider: v1alpha1.DNSParameters{
			SplitDNS: []v1alpha1.SplitDNSDomain{{Domain: domain, Nameservers: []string{"10.0.0.53"}}},
		}},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"})
	return mg
}

func TestReconcile(t *testing.T) {
	type split = map[string][]string
	cases := map[string]struct {
		reason string
		start  split
		more   []client.Object
		run    func(t *testing.T, api *fakeDNS, local, remote *cluster)
		want   split
		writes int
	}{
		"Adds": {
			reason: "One write sets the nameservers of all domains; other domains stay, and nameservers that are set are not written.",
			start:  split{"theirs.example": {"10.9.9.9"}},
			run:    func(t *testing.T, _ *fakeDNS, local, _ *cluster) { local.settle(t, "a") },
			want:   split{"a.example": {"100.64.0.1", "100.64.0.2"}, "b.example": {"100.64.0.1", "100.64.0.2"}, "theirs.example": {"10.9.9.9"}},
			writes: 1,
		},
		"Shares": {
			reason: "The other nameservers of a domain stay, before and after.",
			start:  split{"a.example": {"10.9.9.9"}},
			run: func(t *testing.T, _ *fakeDNS, local, remote *cluster) {
				local.settle(t, "a")
				remote.settle(t, "far")
				local.settle(t, "a")
				local.remove(t, "a")
			},
			want:   split{"a.example": {"10.9.9.9", "100.64.9.1"}},
			writes: 3,
		},
		"Rolls": {
			reason: "Only a nameserver that is no longer wanted is removed.",
			start:  split{"a.example": {"10.9.9.9"}},
			run: func(t *testing.T, _ *fakeDNS, local, _ *cluster) {
				local.settle(t, "a")
				mg := local.get(t, "a")
				mg.Spec.ForProvider = v1alpha1.SplitDNSParameters{Domains: []string{"a.example"}, Nameservers: []string{"100.64.0.2", "100.64.0.3"}}
				if err := local.kube.Update(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
				local.settle(t, "a")
			},
			want:   split{"a.example": {"10.9.9.9", "100.64.0.2", "100.64.0.3"}},
			writes: 2,
		},
		"Drift": {
			reason: "A nameserver that another client removed is added again.",
			run: func(t *testing.T, api *fakeDNS, local, _ *cluster) {
				local.settle(t, "a")
				delete(api.split, "a.example")
				local.settle(t, "a")
			},
			want:   split{"a.example": {"100.64.0.1", "100.64.0.2"}, "b.example": {"100.64.0.1", "100.64.0.2"}},
			writes: 2,
		},
		"Strangers": {
			reason: "A nameserver that existed before the object is not removed.",
			start:  split{"a.example": {"100.64.0.1"}},
			run: func(t *testing.T, _ *fakeDNS, local, _ *cluster) {
				local.settle(t, "a")
				local.remove(t, "a")
			},
			want:   split{"a.example": {"100.64.0.1"}},
			writes: 2,
		},
		"Siblings": {
			reason: "A nameserver of several objects stays until the last of them is deleted.",
			more:   []client.Object{object("same", []string{"a.example"}, "100.64.0.1")},
			run: func(t *testing.T, api *fakeDNS, local, _ *cluster) {
				local.settle(t, "a", "same")
				local.remove(t, "a")
				if diff := cmp.Diff(split{"a.example": {"100.64.0.1"}}, api.split); diff != "" {
					t.Errorf("\nThe nameserver of the object that stays should stay.\n-want, +got:\n%s", diff)
				}
				local.remove(t, "same")
			},
			want:   split{},
			writes: 3,
		},
		"LostWrite": {
			reason: "A write that another cluster has overwritten is repeated.",
			run: func(t *testing.T, api *fakeDNS, local, remote *cluster) {
				remote.settle(t, "far")
				api.stale = split{}
				local.reconcile(t, "a")
				remote.settle(t, "far")
				local.settle(t, "a")
			},
			want:   split{"a.example": {"100.64.0.1", "100.64.0.2", "100.64.9.1"}, "b.example": {"100.64.0.1", "100.64.0.2"}},
			writes: 3,
		},
		"LostReply": {
			reason: "A nameserver whose write had no response is removed with the object.",
			run: func(t *testing.T, api *fakeDNS, local, _ *cluster) {
				api.loseReply = errBoom
				local.reconcile(t, "a")
				api.loseReply = nil
				local.remove(t, "a")
			},
			want:   split{},
			writes: 2,
		},
		"Owned": {
			reason: "A domain of a DNS object is not changed until the DNS object is deleted.",
			run: func(t *testing.T, api *fakeDNS, local, _ *cluster) {
				local.settle(t, "a")
				if err := local.kube.Create(t.Context(), owner("a.example")); err != nil {
					t.Fatal(err)
				}
				local.settle(t, "a")
				if got := local.get(t, "a").GetCondition(xpv2.TypeReady).Reason; got != meta.ReasonConflict {
					t.Errorf("Ready has the reason %q, want %q", got, meta.ReasonConflict)
				}
				if diff := cmp.Diff(split{"b.example": {"100.64.0.1", "100.64.0.2"}}, api.split); diff != "" {
					t.Errorf("\nThe domain should be left to the DNS object.\n-want, +got:\n%s", diff)
				}
				if err := local.kube.Delete(t.Context(), owner("a.example")); err != nil {
					t.Fatal(err)
				}
				local.settle(t, "a")
			},
			want:   split{"a.example": {"100.64.0.1", "100.64.0.2"}, "b.example": {"100.64.0.1", "100.64.0.2"}},
			writes: 3,
		},
		"ObserveOnly": {
			reason: "An object that may only observe writes nothing, and contends for nothing.",
			run: func(t *testing.T, _ *fakeDNS, local, _ *cluster) {
				mg := local.get(t, "a")
				mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
				if err := local.kube.Update(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
				local.settle(t, "a")
			},
			want: split{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &fakeDNS{split: split{}}
			maps.Copy(api.split, tc.start)
			local := newCluster(t, api, append(tc.more, object("a", []string{"a.example", "b.example"}, "100.64.0.1", "100.64.0.2"))...)
			remote := newCluster(t, api, object("far", []string{"a.example"}, "100.64.9.1"))
			tc.run(t, api, local, remote)
			if diff := cmp.Diff(tc.want, api.split); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if api.writes != tc.writes {
				t.Errorf("\n%s\nIt took %d writes, want %d", tc.reason, api.writes, tc.writes)
			}
			if mg := local.get(t, "a"); mg.GetName() != "" && contention.Writes(mg) && mg.GetCondition(xpv2.TypeReady).Status != "True" {
				t.Errorf("\n%s\nReady is %v", tc.reason, mg.GetCondition(xpv2.TypeReady))
			}
		})
	}
}
