// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A slowDNS is a tailnet whose concurrent readers all read the settings before any of them writes,
// unless a lock excludes them.
type slowDNS struct {
	fakeDNS

	mu      sync.Mutex
	readers int
	crowd   chan struct{} // Closed when all readers have read.
	all     int
}

func (s *slowDNS) DNS(ctx context.Context, staleness tailscale.Staleness) (tailscale.DNS, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.fakeDNS.DNS(ctx, staleness)
	out := map[string][]string{}
	for k, v := range d.SplitDNS {
		out[k] = slices.Clone(v)
	}
	if s.readers++; s.readers == s.all {
		close(s.crowd)
	}
	return tailscale.DNS{SplitDNS: out}, err
}

func (s *slowDNS) PatchSplitDNS(ctx context.Context, domains map[string][]string) error {
	select {
	case <-s.crowd:
	case <-time.After(20 * time.Millisecond):
		// A lock excludes the other readers.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fakeDNS.PatchSplitDNS(ctx, domains)
}

// TestTogether changes one tailnet with several objects concurrently.
func TestTogether(t *testing.T) {
	const n = 8
	api := &slowDNS{fakeDNS: fakeDNS{split: map[string][]string{}}}
	var objects []client.Object
	want := map[string]bool{}
	for i := range n {
		a := fmt.Sprintf("100.64.0.%d", i+1)
		want[a] = true
		objects = append(objects, object(fmt.Sprintf("o%d", i), []string{"a.example"}, a))
	}
	c := newCluster(t, &api.fakeDNS, objects...)
	e := &external{api: areas(api), kube: c.kube, live: c.kube}
	together := func(fn func(mg *v1alpha1.SplitDNS) error) {
		t.Helper()
		api.readers, api.all, api.crowd = 0, n, make(chan struct{})
		errs := make(chan error, n)
		for _, o := range objects {
			mg := c.get(t, o.GetName())
			go func() { errs <- fn(mg) }()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	together(func(mg *v1alpha1.SplitDNS) error {
		_, err := e.Create(t.Context(), mg)
		return err
	})
	got := map[string]bool{}
	for _, a := range api.split["a.example"] {
		got[a] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nameservers: -want, +got:\n%s", diff)
	}
	for _, o := range objects {
		if err := c.kube.Delete(t.Context(), c.get(t, o.GetName())); err != nil {
			t.Fatal(err)
		}
	}
	together(func(mg *v1alpha1.SplitDNS) error {
		_, err := e.Delete(t.Context(), mg)
		return err
	})
	if len(api.split) != 0 {
		t.Errorf("unwanted nameservers remain: %v", api.split)
	}
}

// TestLaggingCache deletes two objects while the cache still shows each of them that the other one
// wants their common nameservers.
func TestLaggingCache(t *testing.T) {
	api := &fakeDNS{split: map[string][]string{}}
	c := newCluster(t, api, object("a", []string{"a.example"}, "100.64.0.1"), object("b", []string{"a.example"}, "100.64.0.1"))
	c.settle(t, "a", "b")
	lagging := newCluster(t, api, c.get(t, "a"), c.get(t, "b"))
	for _, name := range []string{"a", "b"} {
		if err := c.kube.Delete(t.Context(), c.get(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		mg := c.get(t, name)
		e := &external{api: areas(api), kube: readsFrom{Client: c.kube, lists: lagging.kube}, live: c.kube}
		if o, err := e.Observe(t.Context(), mg); err != nil || !o.ResourceExists {
			continue
		}
		if _, err := e.Delete(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	if len(api.split) != 0 {
		t.Errorf("unwanted nameservers remain: %v", api.split)
	}
}

// A readsFrom lists the objects of another client.
type readsFrom struct {
	client.Client

	lists client.Client
}

func (r readsFrom) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return r.lists.List(ctx, l, opts...)
}

// TestHandOver deletes an object while another one wants its nameserver, and has not recorded it
// yet.
func TestHandOver(t *testing.T) {
	api := &fakeDNS{split: map[string][]string{}}
	c := newCluster(t, api, object("a", []string{"a.example"}, "100.64.0.1"))
	c.settle(t, "a")
	if err := c.kube.Create(t.Context(), object("b", []string{"a.example"}, "100.64.0.1")); err != nil {
		t.Fatal(err)
	}
	c.remove(t, "a")
	if diff := cmp.Diff(map[string][]string{"a.example": {"100.64.0.1"}}, maps.Clone(api.split)); diff != "" {
		t.Errorf("the nameserver that b wants: -want, +got:\n%s", diff)
	}
	c.settle(t, "b")
	if got := c.get(t, "b").GetCondition(xpv2.TypeReady).Status; got != "True" {
		t.Errorf("b: Ready is %q", got)
	}
	c.remove(t, "b")
	if len(api.split) != 0 {
		t.Errorf("unwanted nameservers remain: %v", api.split)
	}
}
