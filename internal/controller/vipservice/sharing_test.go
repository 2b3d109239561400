// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestShareServiceBetweenClusters(t *testing.T) {
	n := newTailnet(t)
	ps := []*provider{n.provider("a"), n.provider("b"), n.provider("c")}
	mgs := make([]*v1alpha1.VIPService, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		mgs[i] = p.share(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Routes = []string{"HTTPRoute/default/" + p.cluster} })
		wg.Go(func() {
			for range 5 {
				if _, err := p.reconcile(mgs[i]); err != nil {
					t.Logf("cluster %s: %v", p.cluster, err)
				}
			}
		})
	}
	wg.Wait()
	n.later(2 * time.Minute)
	for range 3 {
		for i, p := range ps {
			p.settle(mgs[i])
		}
		n.later(2 * time.Minute)
	}
	if got := len(n.State().Services); got != 4 {
		t.Fatalf("want a service and three records, got %d", got)
	}
	for i, p := range ps {
		o := mgs[i].Status.AtProvider
		if len(o.Consumers) != 3 || o.ConsumerCount == nil || *o.ConsumerCount != 3 || o.OwnServiceName != registry.RecordName("svc:web", p.cluster) || len(o.OwnAddresses) == 0 {
			t.Errorf("status of cluster %s: %+v", p.cluster, o)
		}
		want := v1alpha1.ServiceConsumer{
			ClusterID: p.cluster, OperatorID: "default/web", ServiceName: o.OwnServiceName, Addresses: o.OwnAddresses,
			Routes: []string{"HTTPRoute/default/" + p.cluster}, Health: &v1alpha1.ConsumerHealth{Ready: 1, Total: 1, Score: 50}, NodeIDs: []string{"node-" + p.cluster}, Online: true,
		}
		if diff := cmp.Diff(want, o.Consumers[i]); diff != "" {
			t.Errorf("consumer: -want, +got:\n%s", diff)
		}
	}
	s := n.find("svc:web")
	if s.Annotations[meta.AnnotationConsumerCount] != "3" || s.Annotations[meta.AnnotationLastUpdated] == "" || strings.Count(s.Annotations[meta.AnnotationRegistry], "HTTPRoute/") != 3 {
		t.Errorf("copy: %v", s.Annotations)
	}

	// At rest the provider writes nothing, and makes no call per object.
	n.ResetCalls()
	for range 3 {
		n.later(2 * time.Minute)
		for i, p := range ps {
			if o, err := p.reconcile(mgs[i]); err != nil || !o.ResourceUpToDate {
				t.Fatalf("cluster %s is not at rest: %+v, %v", p.cluster, o, err)
			}
		}
	}
	for call := range n.Calls() {
		if !strings.HasPrefix(call, "GET ") && !strings.Contains(call, "oauth") {
			t.Errorf("at rest: %s", call)
		}
	}

	// A user deletes the service: it is back within a poll, with its address.
	n.delete("svc:web")
	n.later(time.Minute + time.Second)
	if o, err := ps[2].reconcile(mgs[2]); err != nil || o.ResourceUpToDate {
		t.Fatalf("cluster c: want it to make the service again, got %+v, %v", o, err)
	}
	if got := n.find("svc:web"); got == nil || got.Addrs[0] != s.Addrs[0] {
		t.Fatalf("want the service back with %v, got %+v", s.Addrs, got)
	}

	for i, p := range ps {
		if n.find("svc:web") == nil {
			t.Fatalf("the service is gone though cluster %s shares it", p.cluster)
		}
		p.leave(mgs[i])
	}
	if remaining := n.State().Services; len(remaining) != 0 {
		t.Errorf("want nothing left, got %+v", remaining)
	}
}

// TestSharedHostsInTurn checks that the hosts of settled services are asked for, however many of them
// are shared, and although some are paused.
func TestSharedHostsInTurn(t *testing.T) {
	n := newTailnet(t)
	p := n.provider("a")
	rs := reports{"node-a": {Advertised: true}}
	p.reports = func(context.Context, string, string) (reports, error) { return rs, nil }
	var mgs []*v1alpha1.VIPService
	for i := range 3 * inTurn {
		mg := p.share(func(v *v1alpha1.VIPService) {
			v.Name, v.UID = fmt.Sprintf("web%d", i), types.UID(fmt.Sprintf("uid%d", i))
			v.Spec.ForProvider.Name = v1alpha1.ServiceName("svc:" + v.Name)
			v.Spec.ForProvider.HostTags = []v1alpha1.Tag{"tag:k8s"}
		})
		p.settle(mg)
		mgs = append(mgs, mg)
	}
	// The machine is gone before it became a host.
	rs = nil
	for _, mg := range mgs {
		p.settle(mg)
	}
	calls := func(polls int, mgs []*v1alpha1.VIPService) int {
		t.Helper()
		n.ResetCalls()
		for range polls {
			n.later(time.Minute)
			for _, mg := range mgs {
				if o, err := p.reconcile(mg); err != nil || !o.ResourceUpToDate {
					t.Fatalf("service %s is not at rest: %+v, %v", mg.Name, o, err)
				}
			}
		}
		return n.Calls()["GET /api/v2/tailnet/{tailnet}/services/{service}/devices"]
	}
	calls(3, mgs)
	if got, want := calls(6, mgs), 6*inTurn; got != want {
		t.Errorf("want the hosts of settled services to be asked for %d times, got %d", want, got)
	}
	// Others are paused.
	rest := mgs[2*inTurn:]
	calls(10, rest)
	if got, want := calls(6, rest), 6*inTurn; got != want {
		t.Errorf("want the hosts of services to be asked for %d times while others are paused, got %d", want, got)
	}
}

// TestHostsForgetMachines checks that the memory about a service has no machines that are gone, and
// none about an object that is gone.
func TestHostsForgetMachines(t *testing.T) {
	n := newTailnet(t)
	p := n.provider("a")
	var rs reports
	p.reports = func(context.Context, string, string) (reports, error) { return rs, nil }
	mg := p.share(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.HostTags = []v1alpha1.Tag{"tag:k8s"} })
	p.settle(mg)
	machines := func() int {
		all := 0
		for _, a := range p.hosts.entries {
			all += len(a.preapproved) + len(a.looked) + len(a.readvertised)
		}
		return all
	}
	most := 0
	for i := range 10 {
		rs = reports{fmt.Sprintf("node-%d", i): {}}
		p.hosts.preapproved(ownUID(mg.GetUID()), fmt.Sprintf("node-%d", i))
		for range 3 {
			if _, err := p.reconcile(mg); err != nil {
				t.Fatal(err)
			}
			n.later(time.Minute)
		}
		most = max(most, machines())
	}
	// Of the service and of the cluster's own service.
	if most == 0 || most > 6 {
		t.Errorf("want one machine in each part of the memory, got %d in all", most)
	}
	forgetting(p.hosts).Delete(t.Context(), ctrlevent.DeleteEvent{Object: mg}, nil)
	if got := len(p.hosts.entries); got != 0 {
		t.Errorf("want no memory about an object that is gone, got %d entries", got)
	}
}

// TestRecordWithoutMachines checks that a cluster that never had machines loses its share once it is
// gone for a week, and keeps it while its provider runs.
func TestRecordWithoutMachines(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	for _, p := range []*provider{a, b} {
		p.reports = func(context.Context, string, string) (reports, error) { return nil, nil }
	}
	mga, mgb := a.share(), b.share()
	a.settle(mga)
	b.settle(mgb)
	a.settle(mga)
	days := func(count int, run func()) {
		for range count {
			n.later(24 * time.Hour)
			run()
		}
	}
	record := registry.RecordName("svc:web", "b")
	days(20, func() { b.settle(mgb); a.settle(mga) })
	if n.find(record) == nil || len(mga.Status.AtProvider.Consumers) != 2 {
		t.Fatalf("want the share of a running cluster to stay, got %+v", mga.Status.AtProvider.Consumers)
	}
	days(6, func() { a.settle(mga) })
	if n.find(record) == nil {
		t.Fatal("want the share to stay for a week")
	}
	days(3, func() { a.settle(mga) })
	if n.find(record) != nil {
		t.Error("want the share of a cluster that is gone to expire")
	}
	a.leave(mga)
	if n.find("svc:web") != nil {
		t.Error("want the last cluster to delete the service")
	}
}

// TestDetachRoute shows that a route that no longer leads to the service affects only its cluster's
// record: the service and the records of other clusters stay.
func TestDetachRoute(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	withRoutes := func(routes ...string) func(v *v1alpha1.VIPService) {
		return func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Routes = routes }
	}
	mine, other := a.share(withRoutes("HTTPRoute/shop/api", "HTTPRoute/shop/web")), b.share(withRoutes("HTTPRoute/shop/web"))
	settle := func() {
		t.Helper()
		for range 3 {
			a.settle(mine)
			b.settle(other)
			n.later(2 * time.Minute)
		}
	}
	records := func() map[string][]string {
		out := map[string][]string{}
		for _, c := range other.Status.AtProvider.Consumers {
			out[c.ClusterID] = c.Routes
		}
		return out
	}
	settle()
	if diff := cmp.Diff(map[string][]string{"a": {"HTTPRoute/shop/api", "HTTPRoute/shop/web"}, "b": {"HTTPRoute/shop/web"}}, records()); diff != "" {
		t.Fatalf("records: -want, +got:\n%s", diff)
	}
	original := n.find("svc:web")

	for _, routes := range [][]string{{"HTTPRoute/shop/web"}, nil} {
		withRoutes(routes...)(mine)
		settle()
		if diff := cmp.Diff(map[string][]string{"a": routes, "b": {"HTTPRoute/shop/web"}}, records()); diff != "" {
			t.Errorf("records with routes %v: -want, +got:\n%s", routes, diff)
		}
		s := n.find("svc:web")
		if s == nil || s.Addrs[0] != original.Addrs[0] || s.Annotations[meta.AnnotationConsumerCount] != "2" {
			t.Fatalf("with routes %v: want the service to stay, with both clusters, got %+v", routes, s)
		}
		if strings.Contains(s.Annotations[meta.AnnotationRegistry], "shop/api") {
			t.Errorf("the copy names a route that is gone: %s", s.Annotations[meta.AnnotationRegistry])
		}
	}
	if got := len(n.State().Services); got != 3 {
		t.Errorf("want a service and two records, got %d", got)
	}
}

func TestShareThroughFaults(t *testing.T) {
	const path = "/vip-services/"
	cases := map[string]tailnetsim.Fault{
		"AnswerOfPutLost": {Method: http.MethodPut, Path: path, Count: 2, DropReply: true},
		"AnswerOfGetLost": {Method: http.MethodGet, Path: path, Count: 2, DropReply: true},
		"PutFails":        {Method: http.MethodPut, Path: path, Count: 2, Status: http.StatusInternalServerError},
		"DeleteLost":      {Method: http.MethodDelete, Path: path, Count: 2, DropReply: true},
		"DeleteFails":     {Method: http.MethodDelete, Path: path, Count: 5, Status: http.StatusBadGateway},
		"ListFails":       {Method: http.MethodGet, Path: "/vip-services$", Count: 5, Status: http.StatusServiceUnavailable},
		"RateLimited":     {Path: path, Count: 2, Status: http.StatusTooManyRequests},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			n := newTailnet(t)
			a, b := n.provider("a"), n.provider("b")
			ma, mb := a.share(), b.share()
			fault := func() {
				if err := n.SetFaults(f); err != nil {
					t.Fatal(err)
				}
			}
			fault()
			a.settle(ma)
			fault()
			b.settle(mb)
			n.later(2 * time.Minute)
			a.settle(ma)
			if got := len(n.State().Services); got != 3 {
				t.Fatalf("want a service and two records, got %d", got)
			}
			fault()
			a.leave(ma)
			if n.find("svc:web") == nil || n.find(registry.RecordName("svc:web", "b")) == nil {
				t.Fatal("the service is gone though cluster b shares it")
			}
			fault()
			b.leave(mb)
			if remaining := n.State().Services; len(remaining) != 0 {
				t.Errorf("want nothing left, got %+v", remaining)
			}
		})
	}
}

func TestConflictIsReportedOnBothSides(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	ma := a.share()
	mb := b.share(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"tcp:80"} })
	// The first cluster keeps precedence, whatever the IDs.
	b.settle(mb)
	a.settle(ma)
	n.later(2 * time.Minute)
	b.settle(mb)
	n.later(2 * time.Minute)
	a.settle(ma)
	for _, mg := range []*v1alpha1.VIPService{ma, mb} {
		if c := mg.GetCondition(meta.TypeConflict); c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "tcp:80") || !strings.Contains(c.Message, "tcp:443") {
			t.Errorf("conflict: %+v", c)
		}
	}
	if diff := cmp.Diff([]string{"tcp:80"}, n.find("svc:web").Ports); diff != "" {
		t.Errorf("ports: -want, +got:\n%s", diff)
	}
	// Agreement ends the conflict.
	ma.Spec.ForProvider.Ports = mb.Spec.ForProvider.Ports
	a.settle(ma)
	n.later(2 * time.Minute)
	b.settle(mb)
	for _, mg := range []*v1alpha1.VIPService{ma, mb} {
		if c := mg.GetCondition(meta.TypeConflict); c.Status != corev1.ConditionFalse {
			t.Errorf("conflict: %+v", c)
		}
	}
	// The owner leaves: the other cluster's spec takes effect.
	ma.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"tcp:443"}
	a.settle(ma)
	b.leave(mb)
	n.later(2 * time.Minute)
	a.settle(ma)
	if diff := cmp.Diff([]string{"tcp:443"}, n.find("svc:web").Ports); diff != "" {
		t.Errorf("ports: -want, +got:\n%s", diff)
	}
}

func TestAddressTaken(t *testing.T) {
	n := newTailnet(t)
	a := n.provider("a")
	mg := a.share()
	a.settle(mg)
	address := mg.Status.AtProvider.Addresses[0]
	n.delete("svc:web")
	other, err := tailscale.NewClient(tailscale.Config{URL: n.URL, APIKey: simtest.APIKey}, tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Services().PutService(t.Context(), tailscale.Service{Name: "svc:thief", Addrs: []string{address}, Ports: []string{"tcp:443"}}); err != nil {
		t.Fatal(err)
	}
	n.later(2 * time.Minute)
	a.settle(mg)
	c := mg.GetCondition(meta.TypeAddressKept)
	if current := mg.Status.AtProvider.Addresses[0]; current == address || c.Reason != meta.ReasonAddressTaken || !strings.Contains(c.Message, address) {
		t.Errorf("want another address and a condition that reports it, got %s, %+v", current, c)
	}
	if !a.events.has(reasonAddressChanged) {
		t.Error("want an event")
	}
}

func TestExclusiveAndShared(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	exclusive := func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Sharing = v1alpha1.SharingExclusive }
	ma, mb := a.share(exclusive), b.share()
	a.settle(ma)
	if _, err := b.reconcile(mb); err == nil || mb.GetCondition(xpv2.TypeReady).Reason != meta.ReasonForeignService || !strings.Contains(err.Error(), "a/default/web") {
		t.Errorf("want a service that is exclusive to be refused with its owner's name, got %v", err)
	}
	// The owner allows others to share.
	ma.Spec.ForProvider.Sharing = v1alpha1.SharingShared
	a.settle(ma)
	addresses := ma.Status.AtProvider.Addresses
	n.later(2 * time.Minute)
	b.settle(mb)
	if diff := cmp.Diff(addresses, mb.Status.AtProvider.Addresses); diff != "" {
		t.Errorf("addresses: -want, +got:\n%s", diff)
	}
	c := n.provider("c")
	mc := c.share(exclusive)
	if _, err := c.reconcile(mc); err == nil || mc.GetCondition(xpv2.TypeReady).Reason != meta.ReasonSharedByOthers || !strings.Contains(err.Error(), "cluster a, cluster b") {
		t.Errorf("want a shared service to be refused with the names of the clusters, got %v", err)
	}
	observer := n.provider("d").share(func(v *v1alpha1.VIPService) {
		v.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
	})
	want := len(n.State().Services)
	n.ResetCalls()
	if o, err := n.provider("d").reconcile(observer); err != nil || !o.ResourceUpToDate || len(observer.Status.AtProvider.Consumers) != 2 || observer.Status.AtProvider.OwnServiceName != "" {
		t.Errorf("want who only observes to see all and write nothing, got %+v, %v, %+v", o, err, observer.Status.AtProvider)
	}
	if got := len(n.State().Services); got != want {
		t.Errorf("want %d services, got %d", want, got)
	}
}

func TestRestartWhileDetaching(t *testing.T) {
	n := newTailnet(t)
	a := n.provider("a")
	mg := a.share()
	a.settle(mg)
	deleted(mg)
	if o, err := a.reconcile(mg); err != nil || !o.ResourceExists {
		t.Fatalf("want the record to be deleted, got %+v, %v", o, err)
	}
	n.later(registry.Pause + time.Minute)
	// Another process does not know about the wait, so it waits.
	a = n.provider("a")
	for _, want := range []bool{true, true} {
		if o, err := a.reconcile(mg); err != nil || o.ResourceExists != want || n.find("svc:web") == nil {
			t.Fatalf("want it to wait, got %+v, %v", o, err)
		}
		n.later(registry.Pause / 4)
	}
	a.leave(mg)
	if remaining := n.State().Services; len(remaining) != 0 {
		t.Error("want nothing left, got " + fmt.Sprint(remaining))
	}
}

type reconcilerFn func() (reconcile.Result, error)

func (f reconcilerFn) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return f()
}

func TestPaced(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "web"}
	requeue := reconcile.Result{Requeue: true} //nolint:staticcheck // As the managed reconciler does.
	cases := map[string]struct {
		reason string
		pace   time.Duration
		result reconcile.Result
		want   reconcile.Result
	}{
		"Waits":   {reason: "A waiting object is reconciled when the wait is over.", pace: time.Minute, result: requeue, want: reconcile.Result{RequeueAfter: time.Minute}},
		"Others":  {reason: "All other objects are left to the managed reconciler.", result: requeue, want: requeue},
		"IsDone":  {reason: "A finished object is not reconciled again.", pace: time.Minute},
		"Polling": {reason: "A poll stays a poll.", pace: time.Minute, result: reconcile.Result{RequeueAfter: time.Second}, want: reconcile.Result{RequeueAfter: time.Second}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			d := newDetaching()
			p := &paced{detaching: d, Reconciler: reconcilerFn(func() (reconcile.Result, error) {
				if tc.pace > 0 {
					d.pace(name, tc.pace)
				}
				return tc.result, nil
			})}
			got, err := p.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
