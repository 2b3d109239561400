// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	sharedName = "svc:web"
	ownCluster = "a"
)

var ownName = registry.RecordName(sharedName, ownCluster)

// An ownAPI is a tailnet in which the hosts of services wait for approvals.
type ownAPI struct {
	servicesAPI

	waiting  map[string][]string // Nodes, by service.
	devices  []tailscale.Device
	forbid   bool
	calls    []string
	approved []string
}

func (f *ownAPI) Hosts(_ context.Context, service string) ([]tailscale.Host, error) {
	f.calls = append(f.calls, service)
	var out []tailscale.Host
	for _, id := range f.waiting[service] {
		h := tailscale.Host{NodeID: id, State: tailscale.HostReady, Approval: "not-approved"}
		if slices.Contains(f.approved, service+" "+id) {
			h.Approval = approvedByUs
		}
		out = append(out, h)
	}
	return out, nil
}

func (f *ownAPI) HostApproval(_ context.Context, service, id string) (tailscale.HostApproval, error) {
	return tailscale.HostApproval{Approved: slices.Contains(f.approved, service+" "+id)}, nil
}

func (f *ownAPI) ApproveHost(_ context.Context, service, id string) (bool, error) {
	if f.forbid {
		return false, nil
	}
	f.approved = append(f.approved, service+" "+id)
	return true, nil
}

// An ownDevices has the calls of its devices.
type ownDevices struct{ *ownAPI }

func (f ownDevices) DevicesAt(context.Context, tailscale.Staleness) ([]tailscale.Device, time.Time, error) {
	return f.devices, apiTime, nil
}

// ownSharing returns a cluster's share of a service at a given time.
func ownSharing(f *ownAPI, rs reports, hosts *hostsCache) *sharing {
	return &sharing{external: &external{
		connection: connection{api: &api{services: f, devices: ownDevices{f}}, clusterID: ownCluster, memory: new(memo)},
		reports: func(_ context.Context, _, service string) (reports, error) {
			if service != ownName {
				return nil, errors.Errorf("asked for the reports about %s", service)
			}
			return rs, nil
		},
		hosts:  hosts,
		ports:  newPortsCache(),
		record: &recorder{},
	}}
}

func shareObject(change ...func(*v1alpha1.VIPService)) *v1alpha1.VIPService {
	return object(append([]func(*v1alpha1.VIPService){func(v *v1alpha1.VIPService) {
		v.Spec.ForProvider.Sharing = v1alpha1.SharingShared
	}}, change...)...)
}

func TestOwnHosts(t *testing.T) {
	record := registry.View{Services: []tailscale.Service{{Name: ownName}}}
	offered := reports{"n1": {Advertised: true}}
	disabled := false
	cases := map[string]struct {
		reason   string
		mg       *v1alpha1.VIPService
		view     registry.View
		reports  reports
		calls    []string
		approved []string
	}{
		"Offered": {
			reason: "A host that control has not accepted is approved for the cluster's own service, and no other host is.",
			mg:     shareObject(), view: record, reports: offered,
			calls: []string{ownName}, approved: []string{ownName + " n1"},
		},
		"Accepted": {
			reason: "The API is not asked for accepted hosts.",
			mg:     shareObject(), view: record, reports: reports{"n1": {Advertised: true, Accepted: true}},
		},
		"NotYet": {
			reason: "A machine that does not advertise yet is approved without a request for the hosts.",
			mg:     shareObject(), view: record, reports: reports{"n1": {}},
			approved: []string{ownName + " n1"},
		},
		"NoRecord": {
			reason: "A service that does not exist yet has no hosts.",
			mg:     shareObject(), reports: offered,
		},
		"NoAutoApprove": {
			reason: "With manual approval the API is not asked.",
			mg:     shareObject(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.AutoApprove = &disabled }), view: record, reports: offered,
		},
		"NoHostTags": {
			reason: "Without host tags no host may be approved.",
			mg:     shareObject(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.HostTags = nil }), view: record, reports: offered,
		},
		"OtherTags": {
			reason: "A host without one of the host tags is not approved.",
			mg:     shareObject(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.HostTags = []v1alpha1.Tag{"tag:other"} }), view: record, reports: offered,
			calls: []string{ownName},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &ownAPI{
				waiting: map[string][]string{ownName: {"n1", "n2"}},
				devices: []tailscale.Device{{NodeID: "n1", Tags: []string{"tag:k8s"}}, {NodeID: "n2", Tags: []string{"tag:k8s"}}},
			}
			e := ownSharing(f, tc.reports, newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime)))
			if err := e.observeOwnHosts(t.Context(), tc.mg, tc.view); err != nil {
				t.Fatalf("\n%s\nobserveOwnHosts(...): %v", tc.reason, err)
			}
			if err := e.approveOwnHosts(t.Context(), tc.mg); err != nil {
				t.Fatalf("\n%s\napproveOwnHosts(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.calls, f.calls); diff != "" {
				t.Errorf("\n%s\nasked: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.approved, f.approved); diff != "" {
				t.Errorf("\n%s\napproved: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwnHostsAreAskedWhileUnsettled(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(apiTime)
	hosts := newHostsCache(time.Minute, clock)
	f := &ownAPI{waiting: map[string][]string{ownName: {"n1"}}, devices: []tailscale.Device{{NodeID: "n1", Tags: []string{"tag:k8s"}}}}
	mg := shareObject()
	view := registry.View{Services: []tailscale.Service{{Name: ownName}}}
	steps := []struct {
		reason   string
		delay    time.Duration
		report   report
		calls    int
		approved int
		next     time.Duration
	}{
		{reason: "The host is approved at once.", report: report{Advertised: true}, calls: 1, approved: 1, next: firstAsk},
		{reason: "The host is not approved again before control has accepted it.", report: report{Advertised: true}, calls: 1, approved: 1, next: firstAsk},
		{reason: "The API is asked again after some seconds.", delay: firstAsk, report: report{Advertised: true}, calls: 2, approved: 1, next: 2 * firstAsk},
		{reason: "Once control accepts the host, no request and no wait follow.", report: report{Advertised: true, Accepted: true}, calls: 2, approved: 1, next: time.Hour},
		{reason: "No request follows in turn either.", delay: 10 * time.Minute, report: report{Advertised: true, Accepted: true}, calls: 2, approved: 1, next: time.Hour},
	}
	for _, s := range steps {
		clock.SetTime(clock.Now().Add(s.delay))
		e := ownSharing(f, reports{"n1": s.report}, hosts)
		if err := e.observeOwnHosts(t.Context(), mg, view); err != nil {
			t.Fatalf("%s\nobserveOwnHosts(...): %v", s.reason, err)
		}
		if err := e.approveOwnHosts(t.Context(), mg); err != nil {
			t.Fatalf("%s\napproveOwnHosts(...): %v", s.reason, err)
		}
		if got := hosts.next(ownUID(mg.GetUID()), time.Hour); len(f.calls) != s.calls || len(f.approved) != s.approved || got != s.next {
			t.Errorf("%s\nwant %d questions, %d approvals, next in %s; got %d, %d and %s", s.reason, s.calls, s.approved, s.next, len(f.calls), len(f.approved), got)
		}
	}
}

func TestOwnApprovalForbidden(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{},
		hosts:    []tailscale.Host{{NodeID: "n1", State: tailscale.HostReady, Approval: "not-approved"}},
		devices:  []tailscale.Device{{NodeID: "n1", Tags: []string{"tag:k8s"}, ConnectedToControl: true}},
		forbid:   true,
	}
	mg := shareObject()
	_, c := connect(t, f, nil, mg)
	own := registry.RecordName(sharedName, "cluster")
	accepted := false
	c.reports = func(_ context.Context, _, service string) (reports, error) {
		return reports{"n1": {Advertised: true, Accepted: accepted || service == sharedName}}, nil
	}
	connected := func() *sharing {
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := e.(*sharing)
		if !ok {
			t.Fatalf("Connect(...): got %T", e)
		}
		return s
	}
	if _, err := connected().Create(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	// The shared service's hosts are healthy: only the cluster's own service has one that waits.
	mg.Status.AtProvider.Hosts = []v1alpha1.ServiceHost{{NodeID: "n1", Name: "n1", Local: true, Online: true, Configured: true, State: tailscale.HostReady, Approval: approvedByUs}}
	c.hosts.asked(mg.GetUID(), reports{"n1": {Advertised: true, Accepted: true}}, remembered(mg.Status.AtProvider.Hosts))
	for range 3 {
		e := connected()
		o, err := e.Observe(t.Context(), mg)
		if err != nil || o.ResourceUpToDate {
			t.Fatalf("Observe(...): want an approval to be due, got %+v, %v", o, err)
		}
		_, err = e.Update(t.Context(), mg)
		got := mg.GetCondition(meta.TypeApproved)
		if err == nil || got.Reason != meta.ReasonApprovalForbidden || !strings.Contains(got.Message, `{"`+own+`": ["tag:k8s"]}`) {
			t.Fatalf("Update(...): want what to put into the policy file for %s, got %v, %+v", own, err, got)
		}
	}
	if got := mg.Status.AtProvider.Hosts[0].Approval; got != approvedByUs {
		t.Errorf("the shared service's host is %s", got)
	}
	accepted = true
	if o, err := connected().Observe(t.Context(), mg); err != nil || !o.ResourceUpToDate {
		t.Errorf("Observe(...): want nothing to do once control accepts it, got %+v, %v", o, err)
	}
	if got := mg.GetCondition(meta.TypeApproved); got.Status != corev1.ConditionTrue {
		t.Errorf("want the condition to be fixed, got %+v", got)
	}
}

func TestExclusiveExpectsNoOwnHosts(t *testing.T) {
	mg := object()
	_, c := connect(t, &fakeAPI{}, nil, mg)
	c.hosts.asked(ownUID(mg.GetUID()), reports{"n1": {Advertised: true}}, nil)
	if got := c.hosts.next(ownUID(mg.GetUID()), time.Hour); got == time.Hour {
		t.Fatal("want an own service whose hosts are waited for")
	}
	if _, err := c.Connect(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if got := c.hosts.next(ownUID(mg.GetUID()), time.Hour); got != time.Hour {
		t.Errorf("want nothing to wait for once the service is exclusive, got %s", got)
	}
}

func TestRecordPorts(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	two := func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"tcp:443", "tcp:5432"} }
	ma := a.share(two, func(v *v1alpha1.VIPService) { v.Spec.ForProvider.RecordPorts = []v1alpha1.ServicePort{"tcp:5432"} })
	mb := b.share(two)
	a.settle(ma)
	b.settle(mb)
	n.later(2 * time.Minute)
	a.settle(ma)
	for name, want := range map[string][]string{
		sharedName:                           {"tcp:443", "tcp:5432"},
		registry.RecordName(sharedName, "a"): {"tcp:5432"},
		registry.RecordName(sharedName, "b"): {"tcp:443", "tcp:5432"},
	} {
		s := n.find(name)
		if s == nil {
			t.Fatalf("there is no service %s", name)
		}
		if diff := cmp.Diff(want, s.Ports); diff != "" {
			t.Errorf("ports of %s: -want, +got:\n%s", name, diff)
		}
	}
	if c := ma.GetCondition(meta.TypeConflict); c.Status != corev1.ConditionFalse {
		t.Errorf("want no conflict for the ports of own services, got %+v", c)
	}
	// The ports that only the record had are removed.
	ma.Spec.ForProvider.RecordPorts = nil
	a.settle(ma)
	if diff := cmp.Diff([]string{"tcp:443", "tcp:5432"}, n.find(registry.RecordName(sharedName, "a")).Ports); diff != "" {
		t.Errorf("ports: -want, +got:\n%s", diff)
	}
}
