// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
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
	for k, of := range parse.Kinds() {
		if _, ok := o.(*unstructured.Unstructured); ok {
			return parse.KindTrafficPolicy
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
	for k := range parse.Kinds() {
		f.of[k] = informer{controllertest.NewFakeInformer()}
	}
	return f
}

// start a source, which has ended when the test has.
func start(t *testing.T, f *informers) (*Source, *index.Store) {
	t.Helper()
	st := index.NewStore()
	src := NewSource(f, parse.Kinds(), st, logging.NewNopLogger())
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
			if k != parse.KindTailscaleServices {
				i.Synced()
			}
		}
		synctest.Wait()
		if want := []string{"TCPRoute: cannot get an informer: " + noMatch.Error(), "TailscaleServices: is not listed yet; may the extension list and watch it?"}; !cmp.Equal(want, src.Waiting()) {
			t.Errorf("waiting: -want, +got\n%s", cmp.Diff(want, src.Waiting()))
		}
		f.of[parse.KindTailscaleServices].Add(web)
		f.of[parse.KindTailscaleServices].Synced()
		synctest.Wait()
		if !src.HasSynced() {
			t.Fatal("not synced, though all kinds that are there are listed")
		}
		if got := st.Snapshot(); got.Revision != 1 || got.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}).Missing {
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
		key := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a deleted route is gone before Envoy Gateway can know")
		}
		<-time.After(deletionDelay)
		synctest.Wait()
		if st.Snapshot().Route(key) != nil {
			t.Error("a route that is gone is still there")
		}

		// One that comes back stays.
		f.of["HTTPRoute"].Add(route)
		f.of["HTTPRoute"].Delete(route)
		<-time.After(deletionDelay / 2)
		f.of["HTTPRoute"].Add(route)
		<-time.After(deletionDelay)
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a route that was deleted and made again is not there")
		}

		// A CRD that comes later is found.
		f.there("TCPRoute")
		time.Sleep(retryInterval)
		synctest.Wait()
		f.of["TCPRoute"].Add(objects(t, tcpRouteToEdge)[0])
		synctest.Wait()
		if st.Snapshot().Route(ir.RouteKey{Kind: ir.KindTCPRoute, NamespacedName: name("edge")}) == nil {
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
