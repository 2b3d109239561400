// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

var errBoom = errors.New("boom")

// An informer that can tell that it is not stopped.
type informer struct{ *controllertest.FakeInformer }

func (informer) IsStopped() bool { return false }

// informers of kinds, and why there is none for some.
type informers struct {
	mu      sync.Mutex
	of      map[string]informer
	missing map[string]error
}

func kindOf(o client.Object) string {
	for k, of := range Kinds() {
		if _, ok := o.(*unstructured.Unstructured); ok {
			return kindTrafficPolicy
		}
		if reflect.TypeOf(of) == reflect.TypeOf(o) {
			return k
		}
	}
	return ""
}

func (f *informers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := kindOf(o)
	if err := f.missing[k]; err != nil {
		return nil, err
	}
	return f.of[k], nil
}

func (f *informers) there(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.missing, kind)
}

func newInformers() *informers {
	f := &informers{of: map[string]informer{}, missing: map[string]error{}}
	for k := range Kinds() {
		f.of[k] = informer{controllertest.NewFakeInformer()}
	}
	return f
}

// start a source, which has ended when the test has.
func start(t *testing.T, f *informers) (*Source, *Store) {
	t.Helper()
	st := NewStore()
	src := NewSource(f, Kinds(), st, logging.NewNopLogger())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- src.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return src, st
}

func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInformers()
		noMatch := &meta.NoKindMatchError{}
		f.missing["TCPRoute"] = noMatch
		src, st := start(t, f)

		route := objects(t, routeToWeb)[0]
		web := objects(t, servicesWeb)[0]
		f.of["HTTPRoute"].Add(route)
		synctest.Wait()
		if src.HasSynced() || st.Snapshot().Revision != 0 {
			t.Error("a Snapshot is made before all kinds are listed")
		}
		for k, i := range f.of {
			if k != kindTailscaleServices {
				i.Synced()
			}
		}
		synctest.Wait()
		if want := []string{"TCPRoute: cannot get an informer: " + noMatch.Error(), "TailscaleServices: is not listed yet; may the extension list and watch it?"}; !cmp.Equal(want, src.Waiting()) {
			t.Errorf("waiting: -want, +got\n%s", cmp.Diff(want, src.Waiting()))
		}
		f.of[kindTailscaleServices].Add(web)
		f.of[kindTailscaleServices].Synced()
		synctest.Wait()
		if !src.HasSynced() {
			t.Fatal("not synced, though all kinds that are there are listed")
		}
		if got := st.Snapshot(); got.Revision != 1 || got.Target(TargetKey{Kind: TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ProtocolHTTP}).Missing {
			t.Errorf("the first Snapshot has not all: revision %d", got.Revision)
		}

		// An update of the status alone is none, one of the spec is.
		f.of["HTTPRoute"].Update(route, changedRoute(t, 1))
		synctest.Wait()
		if got := st.Snapshot().Revision; got != 1 {
			t.Errorf("revision %d after an update of the status", got)
		}
		f.of["HTTPRoute"].Update(route, changedRoute(t, 2))
		synctest.Wait()
		if got := st.Snapshot().Revision; got != 2 {
			t.Errorf("revision %d after an update", got)
		}
		for _, h := range []any{toolscache.DeletedFinalStateUnknown{Key: "shop/web", Obj: route}} {
			src.changed(h, true)
		}
		key := RouteKey{Kind: KindHTTPRoute, NamespacedName: name("web")}
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a deleted route is gone before Envoy Gateway can know")
		}
		<-time.After(outlast)
		synctest.Wait()
		if st.Snapshot().Route(key) != nil {
			t.Error("a route that is gone is still there")
		}

		// One that comes back stays.
		f.of["HTTPRoute"].Add(route)
		f.of["HTTPRoute"].Delete(route)
		<-time.After(outlast / 2)
		f.of["HTTPRoute"].Add(route)
		<-time.After(outlast)
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a route that was deleted and made again is not there")
		}

		// A CRD that comes later is found.
		f.there("TCPRoute")
		time.Sleep(retryInterval)
		synctest.Wait()
		f.of["TCPRoute"].Add(objects(t, routeTo("TCPRoute", 5432))[0])
		synctest.Wait()
		if st.Snapshot().Route(RouteKey{Kind: KindTCPRoute, NamespacedName: name("edge")}) == nil {
			t.Error("a route whose CRD came later is not there")
		}
		if got := src.Waiting(); len(got) > 0 {
			t.Errorf("waiting: %v", got)
		}
	})
}

// changedRoute has another port. With the generation as it was that cannot be.
func changedRoute(t *testing.T, generation int64) client.Object {
	t.Helper()
	o := objects(t, strings.Replace(routeToWeb, "port: 80", "port: 81", 1))[0]
	o.SetGeneration(generation)
	return o
}

func TestSourceRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInformers()
		f.missing["GRPCRoute"] = errBoom
		src, _ := start(t, f)
		for _, i := range f.of {
			i.Synced()
		}
		synctest.Wait()
		if src.HasSynced() {
			t.Error("synced, though the API server did not say which kinds there are")
		}
		f.there("GRPCRoute")
		time.Sleep(retryInterval)
		synctest.Wait()
		if !src.HasSynced() {
			t.Errorf("not synced: %v", src.Waiting())
		}
	})
}

func TestStrip(t *testing.T) {
	for k, o := range Kinds() {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		if _, err := strip(o); err != nil {
			t.Error(err)
		}
		if o.GetManagedFields() != nil || o.GetAnnotations() != nil {
			t.Errorf("%s keeps what nobody reads", k)
		}
	}
	// What a Store makes of objects is the same without it.
	var cs []Change
	for _, o := range objects(t, everything()...) {
		if _, err := strip(o); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, Change{Object: o})
	}
	s := NewStore()
	if err := s.Apply(cs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(snapshotOf(t, everything()...), s.Snapshot(), compareSnapshots()); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	c := &corev1.ConfigMap{Data: map[string]string{"big": "x", caKey: "PEM"}, BinaryData: map[string][]byte{"b": nil}}
	if _, err := strip(c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&corev1.ConfigMap{Data: map[string]string{caKey: "PEM"}}, c); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
}

func TestKinds(t *testing.T) {
	s, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for k, o := range Kinds() {
		if _, _, err := s.ObjectKinds(o); err != nil && k != kindTrafficPolicy {
			unknown = append(unknown, k)
		}
		if err := NewStore().Apply(Change{Object: o}); err != nil {
			t.Errorf("a store does not take what it says that it does: %v", err)
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		t.Errorf("the scheme does not know %v", unknown)
	}
}
