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

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

var errBoom = errors.New("boom")

// An informer is a fake informer that reports that it is running.
type informer struct{ *controllertest.FakeInformer }

func (informer) IsStopped() bool { return false }

// informers returns fake informers by kind, and the error for kinds that have none.
type informers struct {
	mu      sync.Mutex
	byKind  map[string]informer
	missing map[string]error
}

func kindOf(o client.Object) string {
	for k, object := range parse.Kinds() {
		if _, ok := o.(*unstructured.Unstructured); ok {
			return parse.KindTrafficPolicy
		}
		if reflect.TypeOf(object) == reflect.TypeOf(o) {
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
	return f.byKind[k], nil
}

func (f *informers) there(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.missing, kind)
}

func newInformers() *informers {
	f := &informers{byKind: map[string]informer{}, missing: map[string]error{}}
	for k := range parse.Kinds() {
		f.byKind[k] = informer{controllertest.NewFakeInformer()}
	}
	return f
}

// start runs a source until the test ends.
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
		f.byKind["HTTPRoute"].Add(route)
		synctest.Wait()
		if src.HasSynced() || st.Snapshot().Revision != 0 {
			t.Error("the source made a Snapshot before all kinds are listed")
		}
		for k, i := range f.byKind {
			if k != parse.KindTailscaleServices {
				i.Synced()
			}
		}
		synctest.Wait()
		if want := []string{"TCPRoute: cannot get an informer: " + noMatch.Error(), "TailscaleServices: is not listed yet; may the extension list and watch it?"}; !cmp.Equal(want, src.Waiting()) {
			t.Errorf("waiting: -want, +got\n%s", cmp.Diff(want, src.Waiting()))
		}
		f.byKind[parse.KindTailscaleServices].Add(web)
		f.byKind[parse.KindTailscaleServices].Synced()
		synctest.Wait()
		if !src.HasSynced() {
			t.Fatal("not synced, although all kinds that exist are listed")
		}
		if got := st.Snapshot(); got.Revision != 1 || got.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}).Missing {
			t.Errorf("the first Snapshot is incomplete: revision %d", got.Revision)
		}

		// An update of the status alone changes nothing. An update of the spec does.
		f.byKind["HTTPRoute"].Update(route, changedRoute(t, 1))
		synctest.Wait()
		if got := st.Snapshot().Revision; got != 1 {
			t.Errorf("revision %d after an update of the status", got)
		}
		f.byKind["HTTPRoute"].Update(route, changedRoute(t, 2))
		synctest.Wait()
		if got := st.Snapshot().Revision; got != 2 {
			t.Errorf("revision %d after an update", got)
		}
		Handler(src.changed).OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop/web", Obj: route})
		key := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a deleted route is gone before Envoy Gateway can see the deletion")
		}
		<-time.After(deletionDelay)
		synctest.Wait()
		if st.Snapshot().Route(key) != nil {
			t.Error("a deleted route is still known after the delay")
		}

		// A route that is created again within the delay stays known.
		f.byKind["HTTPRoute"].Add(route)
		f.byKind["HTTPRoute"].Delete(route)
		<-time.After(deletionDelay / 2)
		f.byKind["HTTPRoute"].Add(route)
		<-time.After(deletionDelay)
		synctest.Wait()
		if st.Snapshot().Route(key) == nil {
			t.Error("a route that was deleted and created again is missing")
		}

		// A kind whose CRD is created later is watched.
		f.there("TCPRoute")
		time.Sleep(RetryInterval)
		synctest.Wait()
		f.byKind["TCPRoute"].Add(objects(t, tcpRouteToEdge)[0])
		synctest.Wait()
		if st.Snapshot().Route(ir.RouteKey{Kind: ir.KindTCPRoute, NamespacedName: name("edge")}) == nil {
			t.Error("a route whose CRD was created later is missing")
		}
		if got := src.Waiting(); len(got) > 0 {
			t.Errorf("waiting: %v", got)
		}
	})
}

// changedRoute returns the route with another port and this generation. On a real API
// server, a change of the port changes the generation too.
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
		for _, i := range f.byKind {
			i.Synced()
		}
		synctest.Wait()
		if src.HasSynced() {
			t.Error("synced, although the API server did not report which kinds exist")
		}
		f.there("GRPCRoute")
		time.Sleep(RetryInterval)
		synctest.Wait()
		if !src.HasSynced() {
			t.Errorf("not synced: %v", src.Waiting())
		}
	})
}

// TestSlowPolicy checks that objects of other kinds take effect while a policy is read that takes
// arbitrarily long, and that nobody waits for the store.
func TestSlowPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInformers()
		src, st := start(t, f)
		release := make(chan struct{})
		src.read = func(c index.Change) index.Change {
			if _, ok := c.Object.(*gatewayv1alpha1.TailscaleRoutePolicy); ok {
				<-release
			}
			return st.Read(c)
		}
		for _, i := range f.byKind {
			i.Synced()
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			f.byKind["TailscaleRoutePolicy"].Add(objects(t, slowPolicy)[0])
		}()
		synctest.Wait()
		go f.byKind["HTTPRoute"].Add(objects(t, routeToWeb)[0])
		synctest.Wait()
		if st.Snapshot().Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}) == nil {
			t.Error("a route waits for a policy of another tenant")
		}
		if st.Snapshot().Policies().Exist() {
			t.Error("the policy takes effect before it is read")
		}
		close(release)
		<-read
		synctest.Wait()
		if !st.Snapshot().Policies().Exist() {
			t.Error("the policy does not take effect")
		}
	})
}
