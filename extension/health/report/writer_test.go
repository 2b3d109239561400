// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// probed provides the targets of a test.
type probed struct {
	mu      sync.Mutex
	targets []health.Target

	// shown counts how often each target was returned.
	shown map[ir.TargetKey]int
}

func (p *probed) Targets(wanted func(ir.TargetKey) bool) []health.Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown == nil {
		p.shown = map[ir.TargetKey]int{}
	}
	var out []health.Target
	for _, t := range p.targets {
		if wanted == nil || wanted(t.Key) {
			p.shown[t.Key]++
			out = append(out, t)
		}
	}
	return out
}

func (p *probed) set(targets ...health.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
}

func keyOf(name string, port int32) ir.TargetKey {
	return ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: name, Port: port, Protocol: ir.ProtocolHTTP}
}

// targetOf returns a target of a service with two endpoints, of which the named ones are unhealthy.
func targetOf(name string, port int32, unhealthy ...string) health.Target {
	t := health.Target{Key: keyOf(name, port), Tier: health.TierLocal}
	for _, a := range []string{"10.0.0.2", "10.0.0.1"} {
		e := health.Endpoint{Name: "app", Address: a, Port: 8080, IsHealthy: true}
		if slices.Contains(unhealthy, a) {
			e.IsHealthy, e.Reason = false, "HTTP status 500"
		}
		t.Endpoints = append(t.Endpoints, e)
	}
	return t
}

func TestBuild(t *testing.T) {
	o := ObjectOf(keyOf("web", 80))
	routes := []ir.RouteKey{
		{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "b"}},
		{Kind: ir.KindGRPCRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: "a"}},
	}
	got := build(o, []health.Target{targetOf("web", 443), targetOf("web", 80, "10.0.0.1", "10.0.0.2")}, routes)
	endpoint := func(a string) tailnetv1alpha1.UnhealthyEndpoint {
		return tailnetv1alpha1.UnhealthyEndpoint{Name: "app", Address: a, EndpointPort: 8080, Reason: "HTTP status 500"}
	}
	want := tailnetv1alpha1.HealthReportSpec{
		TargetRef: tailnetv1alpha1.HealthReportTarget{Kind: "TailscaleServices", Name: "web"},
		Ports: []tailnetv1alpha1.HealthReportPort{
			{Port: 80, Protocol: "http", Tier: "Local", Endpoints: 2, UnhealthyEndpoints: []tailnetv1alpha1.UnhealthyEndpoint{endpoint("10.0.0.1"), endpoint("10.0.0.2")}},
			{Port: 443, Protocol: "http", Tier: "Local", Endpoints: 2, Healthy: 2},
		},
		Routes: []string{"GRPCRoute/team/a", "HTTPRoute/shop/b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	e := ObjectOf(ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "web"})
	if e.report() == o.report() {
		t.Error("objects of two kinds and one name have one report")
	}
	for _, o := range []Object{o, e} {
		n := o.report()
		r := &tailnetv1alpha1.HealthReport{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}, Spec: build(o, nil, nil)}
		if got, ok := objectOf(r); !ok || got != o {
			t.Errorf("the report of %v is for %v", o, got)
		}
		r.Name = "another"
		if _, ok := objectOf(r); ok {
			t.Error("a report with another name should have no object")
		}
	}
}

// A desk is a running writer with its API.
type desk struct {
	kube   client.Client
	probed *probed
	led    *led
	w      *Writer

	mu      sync.Mutex
	applied int
	fail    error
	stop    func()
}

func (d *desk) writes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.applied
}

func newDesk(t *testing.T, objects ...client.Object) *desk {
	t.Helper()
	s, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{probed: &probed{}, led: &led{}}
	d.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			d.mu.Lock()
			d.applied++
			err := d.fail
			d.mu.Unlock()
			if err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
	}).Build()
	d.w = NewWriter(d.probed, d.led, NewChanges(), d.kube, d.kube, nil, logging.NewNopLogger())
	return d
}

func (d *desk) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.w.Run(ctx) }()
	d.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// healthy returns the number of healthy endpoints in web's report; -1 if there is none.
func (d *desk) healthy(t *testing.T) int32 {
	t.Helper()
	r := &tailnetv1alpha1.HealthReport{}
	err := d.kube.Get(t.Context(), ObjectOf(keyOf("web", 80)).report(), r)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return -1
	}
	if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != "1" {
		t.Errorf("owners %v, want the object", r.OwnerReferences)
	}
	return r.Spec.Ports[0].Healthy
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func web() client.Object {
	return &gatewayv1alpha1.TailscaleServices{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID("1")}}
}

func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.probed.set(targetOf("web", 80))
		d.start(t)
		defer d.stop()
		after(warmUp - time.Second)
		if n := d.writes(); n != 0 {
			t.Fatalf("%d writes before the warm-up ends", n)
		}
		after(2 * time.Second)
		if h := d.healthy(t); h != 2 || d.writes() != 1 {
			t.Fatalf("%d healthy after %d writes, want 2 after one", h, d.writes())
		}
		changed := []ir.TargetKey{keyOf("web", 80), keyOf("unknown", 80)}
		after(time.Minute)
		d.w.changes.Add(changed)
		after(time.Minute)
		if n := d.writes(); n != 1 {
			t.Fatalf("%d writes, want none without a change", n)
		}
		for _, names := range [][]string{{"10.0.0.1"}, {}, {"10.0.0.1", "10.0.0.2"}} {
			d.probed.set(targetOf("web", 80, names...))
			d.w.changes.Add(changed)
			after(time.Second)
		}
		if h := d.healthy(t); h != 1 || d.writes() != 2 {
			t.Fatalf("%d healthy after %d writes, want the first transition at once, and no other yet", h, d.writes())
		}
		after(pause)
		if h := d.healthy(t); h != 0 || d.writes() != 3 {
			t.Fatalf("%d healthy after %d writes, want the last transition, in one", h, d.writes())
		}
		d.probed.set()
		d.w.changes.Add(changed)
		after(pause)
		if h := d.healthy(t); h != -1 {
			t.Errorf("%d healthy, want no report for an object without routes", h)
		}
	})
}

// TestWriterCost checks that a change costs nothing for other objects, however many endpoints they have,
// and nothing for an object whose report is not due yet.
func TestWriterCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.start(t)
		defer d.stop()
		d.probed.set(targetOf("web", 80), targetOf("other", 80))
		after(warmUp + 2*pause)
		initial := maps.Clone(d.probed.shown)
		d.probed.set(targetOf("web", 80, "10.0.0.1"), targetOf("other", 80))
		for range 10 {
			d.w.changes.Add([]ir.TargetKey{keyOf("web", 80)})
			after(time.Millisecond)
		}
		if got := d.probed.shown[keyOf("web", 80)] - initial[keyOf("web", 80)]; got != 1 {
			t.Errorf("want the changed object to be read once until its next report is due, got %d times", got)
		}
		if got := d.probed.shown[keyOf("other", 80)] - initial[keyOf("other", 80)]; got != 0 {
			t.Errorf("want no other object to be read, got %d times", got)
		}
	})
}

// TestFailover checks the failover in reports.
func TestFailover(t *testing.T) {
	first, second := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	spec := func(f *tailnetv1alpha1.HealthReportFailover, unhealthy []tailnetv1alpha1.UnhealthyEndpoint, tiers ...tailnetv1alpha1.HealthTier) *tailnetv1alpha1.HealthReportSpec {
		out := &tailnetv1alpha1.HealthReportSpec{Failover: f}
		for i, tier := range tiers {
			out.Ports = append(out.Ports, tailnetv1alpha1.HealthReportPort{Port: int32(80 + i), Tier: tier, UnhealthyEndpoints: unhealthy})
		}
		return out
	}
	const local, remote, last = tailnetv1alpha1.HealthTierLocal, tailnetv1alpha1.HealthTierRemote, tailnetv1alpha1.HealthTierLastResort
	unhealthy := []tailnetv1alpha1.UnhealthyEndpoint{{Name: "app", Reason: "HTTP status 500"}}
	previous := &tailnetv1alpha1.HealthReportFailover{Failover: first, Reason: "app at port 80: HTTP status 500"}
	back := &tailnetv1alpha1.HealthReportFailover{Failover: first, Failback: &second, Reason: previous.Reason}
	cases := map[string]struct {
		reason            string
		previous, current *tailnetv1alpha1.HealthReportSpec
		want              *tailnetv1alpha1.HealthReportFailover
	}{
		"First":       {reason: "The first report of an object should have none.", current: spec(nil, unhealthy, remote)},
		"Steady":      {reason: "Nothing has changed.", previous: spec(nil, nil, local, local), current: spec(nil, unhealthy, local, local)},
		"Failover":    {reason: "One port is enough.", previous: spec(nil, nil, local, local), current: spec(nil, unhealthy, local, remote), want: &tailnetv1alpha1.HealthReportFailover{Failover: second, Reason: "app at port 81: HTTP status 500"}},
		"NoneLeft":    {reason: "Removed endpoints are not unhealthy.", previous: spec(nil, nil, local), current: spec(nil, nil, remote), want: &tailnetv1alpha1.HealthReportFailover{Failover: second, Reason: "there is no local endpoint"}},
		"Stays":       {reason: "A change between two remote destinations is no failover.", previous: spec(previous, unhealthy, remote), current: spec(nil, unhealthy, last), want: previous},
		"Failback":    {reason: "All ports must have local endpoints again.", previous: spec(previous, unhealthy, remote, local), current: spec(nil, nil, local, local), want: back},
		"NotAll":      {reason: "One port is not enough.", previous: spec(previous, unhealthy, remote, remote), current: spec(nil, unhealthy, remote, local), want: previous},
		"Again":       {reason: "The last failover counts.", previous: spec(back, nil, local), current: spec(nil, unhealthy, remote), want: &tailnetv1alpha1.HealthReportFailover{Failover: second, Reason: "app at port 80: HTTP status 500"}},
		"NeverFailed": {reason: "An object that began with remote endpoints has not failed over.", previous: spec(nil, unhealthy, remote), current: spec(nil, nil, local)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, failover(tc.previous, tc.current, second)); diff != "" {
				t.Errorf("\n%s\nfailover(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWriterFailover checks that a failover is written with its report, and causes no other write.
func TestWriterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.probed.set(targetOf("web", 80))
		d.start(t)
		defer d.stop()
		after(warmUp + time.Second)
		failed := targetOf("web", 80, "10.0.0.1", "10.0.0.2")
		failed.Tier = health.TierRemote
		d.probed.set(failed)
		d.w.changes.Add([]ir.TargetKey{keyOf("web", 80)})
		after(pause)
		at := metav1.Now()
		for range 3 {
			after(time.Minute)
			d.w.changes.Add([]ir.TargetKey{keyOf("web", 80)})
		}
		if n := d.writes(); n != 2 {
			t.Errorf("%d writes, want one more for the failover", n)
		}
		r := &tailnetv1alpha1.HealthReport{}
		if err := d.kube.Get(t.Context(), ObjectOf(keyOf("web", 80)).report(), r); err != nil {
			t.Fatal(err)
		}
		f := r.Spec.Failover
		if f == nil || f.Failback != nil || f.Failover.After(at.Time) || at.Sub(f.Failover.Time) > 2*pause || f.Reason != "app at port 80: HTTP status 500" {
			t.Errorf("failover %v, want one at about %v", f, at)
		}
	})
}

// TestTwoExtensions checks that a Gateway's own extension reports objects that the installed one
// does not, and stops when the installed one does.
func TestTwoExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		installed := newDesk(t, web())
		own := &desk{kube: installed.kube, probed: &probed{}, led: &led{}}
		own.w = NewWriter(own.probed, own.led, NewChanges(), own.kube, own.kube, &types.NamespacedName{Namespace: "shop", Name: "team"}, logging.NewNopLogger())
		own.probed.set(targetOf("web", 80))
		changed := []ir.TargetKey{keyOf("web", 80)}
		// author returns the writer of web's report. Empty for the installed one.
		author := func() (string, int32) {
			t.Helper()
			r := &tailnetv1alpha1.HealthReport{}
			if err := installed.kube.Get(t.Context(), ObjectOf(keyOf("web", 80)).report(), r); err != nil {
				t.Fatal(err)
			}
			return r.Annotations[gatewayKey], r.Spec.Ports[0].Healthy
		}
		installed.start(t)
		defer installed.stop()
		own.start(t)
		defer own.stop()
		after(warmUp + time.Second)
		if gateway, _ := author(); gateway != "team" {
			t.Errorf("%q reports, want the Gateway's own extension: the installed one has no route to the object", gateway)
		}

		installed.probed.set(targetOf("web", 80, "10.0.0.1"))
		installed.w.changes.Add(changed)
		after(pause)
		if gateway, n := author(); gateway != "" || n != 1 {
			t.Errorf("%q reports %d, want the installed one to take over", gateway, n)
		}
		own.probed.set(targetOf("web", 80, "10.0.0.1", "10.0.0.2"))
		own.w.changes.Add(changed)
		after(time.Minute)
		if gateway, n := author(); gateway != "" || n != 1 {
			t.Errorf("%q reports %d, want the other one to stop", gateway, n)
		}

		installed.probed.set()
		installed.w.changes.Add(changed)
		after(recheck + pause)
		if gateway, n := author(); gateway != "team" || n != 0 {
			t.Errorf("%q reports %d, want the Gateway's own again after the installed one lost its route", gateway, n)
		}
	})
}

func TestWriterTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := func(o Object, targets ...health.Target) client.Object {
			n := o.report()
			return &tailnetv1alpha1.HealthReport{
				ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, OwnerReferences: []metav1.OwnerReference{{UID: "1"}}},
				Spec:       build(o, targets, nil),
			}
		}
		unused := ObjectOf(keyOf("gone", 80))
		d := newDesk(t, web(), report(ObjectOf(keyOf("web", 80)), targetOf("web", 80)), report(unused))
		d.probed.set(targetOf("web", 80), targetOf("ownerless", 80))
		d.start(t)
		defer d.stop()
		after(warmUp + time.Second)
		if n := d.writes(); n != 0 {
			t.Errorf("%d writes, want none: the report is up to date, and a missing object has no report", n)
		}
		r := &tailnetv1alpha1.HealthReport{}
		if err := d.kube.Get(t.Context(), unused.report(), r); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("an unused report remains: %v", err)
		}
	})
}

func TestWriterTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.fail = errors.New("boom")
		d.probed.set(targetOf("web", 80))
		d.start(t)
		defer d.stop()
		after(warmUp + retry + retry/2)
		if n := d.writes(); n != 2 {
			t.Errorf("%d writes, want one each %s", n, retry)
		}
		d.mu.Lock()
		d.fail = nil
		d.mu.Unlock()
		after(retry)
		if h := d.healthy(t); h != 2 {
			t.Errorf("%d healthy, want 2", h)
		}
	})
}

// TestWriterIdle checks that a replica which does not write collects nothing while targets with new
// names come and go.
func TestWriterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.probed.set(targetOf("web", 80))
		churn := func() int {
			for i := range 1000 {
				d.w.changes.Add([]ir.TargetKey{keyOf(fmt.Sprintf("web-%d", i), 80)})
			}
			d.w.changes.mu.Lock()
			defer d.w.changes.mu.Unlock()
			return len(d.w.changes.pending)
		}
		if n := churn(); n != 0 {
			t.Errorf("%d objects are pending before the first Run", n)
		}
		d.start(t)
		after(warmUp + time.Second)
		if h := d.healthy(t); h != 2 {
			t.Errorf("%d healthy, want 2: the first pass should cover all objects", h)
		}
		d.stop()
		if n := churn(); n != 0 {
			t.Errorf("%d objects are pending after Run", n)
		}
	})
}
