// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// newKube returns a cluster with the given objects.
func newKube(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatalf("AddToScheme(...): %v", err)
		}
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).Build()
}

// Reports of one machine.
var (
	routedReport  = report{Advertised: true, Accepted: true, Routed: v1alpha1.RoutingTrue}
	deadReport    = report{Advertised: true, Accepted: true, Routed: v1alpha1.RoutingFalse}
	pendingReport = report{Advertised: true, Accepted: true, Routed: v1alpha1.RoutingUnknown}
	silentReport  = report{Advertised: true, Accepted: true}
	waitingReport = report{Advertised: true, Routed: v1alpha1.RoutingUnknown}
	idleReport    = report{Routed: v1alpha1.RoutingUnknown}
)

func TestRouting(t *testing.T) {
	cases := map[string]struct {
		reason  string
		reports reports
		want    routing
	}{
		"None":       {reason: "Without machines there is no host.", want: routingUnhosted},
		"Idle":       {reason: "Nor if none offers the service.", reports: reports{"n1": idleReport}, want: routingUnhosted},
		"Routed":     {reason: "One primary host is enough.", reports: reports{"n1": deadReport, "n2": routedReport}, want: routingRouted},
		"RoutedElse": {reason: "A machine that offers nothing can see the primary host, too.", reports: reports{"n1": deadReport, "n2": {Routed: v1alpha1.RoutingTrue}}, want: routingRouted},
		"Several":    {reason: "With regional routing several hosts are primary.", reports: reports{"n1": routedReport, "n2": routedReport}, want: routingRouted},
		"Dead":       {reason: "All machines see no primary host.", reports: reports{"n1": deadReport, "n2": deadReport}, want: routingUnrouted},
		"Pending":    {reason: "One machine is not certain yet.", reports: reports{"n1": deadReport, "n2": pendingReport}, want: routingPending},
		"OldAgent":   {reason: "An agent of an older version may be primary.", reports: reports{"n1": deadReport, "n2": silentReport}, want: routingNotReported},
		"Unapproved": {reason: "A machine that is not accepted cannot be primary.", reports: reports{"n1": deadReport, "n2": waitingReport}, want: routingUnrouted},
		"Approval":   {reason: "No machine is accepted yet.", reports: reports{"n2": waitingReport}, want: routingUndecided},
		"Outdated":   {reason: "The last report of a disconnected machine is outdated.", reports: reports{"n1": deadReport, "offline": routedReport}, want: routingUnrouted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.reports.routing(func(id string) bool { return id == "offline" }); got != tc.want {
				t.Errorf("\n%s\nrouting(...): want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRoutedCondition(t *testing.T) {
	condition := func(s corev1.ConditionStatus, r xpv2.ConditionReason) xpv2.Condition {
		return xpv2.Condition{Type: meta.TypeRouted, Status: s, Reason: r}
	}
	unset := xpv2.Condition{Type: meta.TypeRouted, Status: corev1.ConditionUnknown}
	ok, dead := condition(corev1.ConditionTrue, meta.ReasonHostPrimary), condition(corev1.ConditionFalse, meta.ReasonNoPrimaryHost)
	waits, unknown := condition(corev1.ConditionUnknown, meta.ReasonWaitingForPrimary), condition(corev1.ConditionUnknown, meta.ReasonPrimaryNotReported)
	idle := condition(corev1.ConditionUnknown, meta.ReasonNoHost)
	cases := map[string]struct {
		reason              string
		previous            xpv2.Condition
		fresh, seen, hidden bool
		routing             routing
		want                *xpv2.Condition
	}{
		"Routed":         {reason: "A host is primary.", previous: waits, routing: routingRouted, want: &ok},
		"Fresh":          {reason: "A new service is not ready before control has moved its addresses.", previous: unset, fresh: true, routing: routingPending, want: &waits},
		"StillWaiting":   {reason: "The next observation says the same.", previous: waits, routing: routingPending, want: &waits},
		"Upgrade":        {reason: "A service that worked before an upgrade does not wait.", previous: unset, routing: routingPending},
		"Failover":       {reason: "While it is not certain, nothing changes.", previous: ok, seen: true, routing: routingPending},
		"Dead":           {reason: "No host is primary.", previous: ok, seen: true, routing: routingUnrouted, want: &dead},
		"DeadAtOnce":     {reason: "Nor was one ever.", previous: waits, seen: true, routing: routingUnrouted, want: &dead},
		"StillDead":      {reason: "An agent that begins to watch again changes nothing.", previous: dead, seen: true, routing: routingPending},
		"NeverSeen":      {reason: "Where control does not report primary hosts, this is only reported.", previous: waits, routing: routingUnrouted, want: &unknown},
		"NeverSeenLater": {reason: "Also for a service that was routed by a peer.", previous: ok, routing: routingUnrouted, want: &unknown},
		"Hidden":         {reason: "A host that no machine sees may be primary.", previous: waits, seen: true, hidden: true, routing: routingUnrouted, want: &unknown},
		"HiddenLater":    {reason: "A routed service stays routed then.", previous: ok, seen: true, hidden: true, routing: routingUnrouted},
		"HiddenSince":    {reason: "A dead service may be served by another cluster since.", previous: dead, seen: true, hidden: true, routing: routingUnrouted, want: &unknown},
		"OldAgents":      {reason: "Agents of older versions do not report it, and nothing waits for that.", previous: unset, fresh: true, routing: routingNotReported},
		"OldAgent":       {reason: "Nor for one among others.", previous: waits, routing: routingNotReported, want: &unknown},
		"Idle":           {reason: "Without hosts nothing is routed.", previous: ok, routing: routingUnhosted, want: &idle},
		"IdleAtFirst":    {reason: "A service that never had hosts has no condition.", previous: unset, fresh: true, routing: routingUnhosted},
		"FromIdle":       {reason: "A service that has hosts again waits for control, too.", previous: idle, routing: routingPending, want: &waits},
		"NotAccepted":    {reason: "Before a machine is accepted, the approval matters.", previous: unset, fresh: true, routing: routingUndecided},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := routedCondition(tc.previous, tc.fresh, tc.seen, tc.hidden, tc.routing, "svc:web")
			if got != nil {
				got.Message = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nroutedCondition(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHidden(t *testing.T) {
	foreign := v1alpha1.ServiceHost{NodeID: "theirs", Online: true, Approval: "approved:auto"}
	member := func(h *registry.Health) registry.Member {
		return registry.Member{Alive: true, Record: registry.Record{Cluster: "b", Nodes: []string{"theirs"}, Health: h}}
	}
	expired := member(nil)
	expired.Alive = false
	cases := map[string]struct {
		reason string
		hosts  []v1alpha1.ServiceHost
		others []registry.Member
		want   bool
	}{
		"Alone":      {reason: "Our own machines report themselves.", hosts: []v1alpha1.ServiceHost{{NodeID: "n1", Local: true, Online: true, Approval: "approved:auto"}}},
		"Foreign":    {reason: "A host of others may be primary.", hosts: []v1alpha1.ServiceHost{foreign}, want: true},
		"Offline":    {reason: "A disconnected one answers nobody.", hosts: []v1alpha1.ServiceHost{{NodeID: "theirs", Approval: "approved:auto"}}},
		"Unapproved": {reason: "One that is not approved has no addresses.", hosts: []v1alpha1.ServiceHost{{NodeID: "theirs", Online: true, Approval: "not-approved"}}},
		"Dead":       {reason: "A cluster records that it sees no primary host either.", hosts: []v1alpha1.ServiceHost{foreign}, others: []registry.Member{member(&registry.Health{Ready: 1, Unrouted: true})}},
		"Alive":      {reason: "A cluster that does not may have the primary host.", others: []registry.Member{member(&registry.Health{Ready: 1})}, want: true},
		"Compact":    {reason: "A record without health says nothing.", others: []registry.Member{member(nil)}, want: true},
		"Idle":       {reason: "A cluster whose machines offer nothing has no primary host.", others: []registry.Member{member(&registry.Health{Total: 1})}},
		"Gone":       {reason: "Nor has one that is gone.", others: []registry.Member{expired}},
		"Stranger":   {reason: "The record speaks for its own machines only.", hosts: []v1alpha1.ServiceHost{{NodeID: "other", Online: true, Approval: "approved:auto"}}, others: []registry.Member{member(&registry.Health{Ready: 1, Unrouted: true})}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hidden(tc.hosts, tc.others); got != tc.want {
				t.Errorf("\n%s\nhidden(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestNextRemedy(t *testing.T) {
	start := apiTime
	last := func(a v1alpha1.RemedyAction, machine string, at time.Duration, restarted *metav1.Time) *v1alpha1.RoutingRemedy {
		return &v1alpha1.RoutingRemedy{Action: a, Machine: machine, Time: metav1.NewTime(start.Add(at)), Restarted: restarted}
	}
	remedy := func(a v1alpha1.RemedyAction, machine string) *v1alpha1.RoutingRemedy {
		return &v1alpha1.RoutingRemedy{Action: a, Machine: machine}
	}
	const advertise, restart = v1alpha1.RemedyActionAdvertise, v1alpha1.RemedyActionRestart
	lately, longAgo := metav1.NewTime(start.Add(-time.Minute)), metav1.NewTime(start.Add(-2*time.Hour))
	dead := v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingFalse}
	other := v1alpha1.HostedService{Name: "svc:db", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingTrue}
	machines := []v1alpha1.Machine{*hostingMachine("a", "n1", dead, other), *hostingMachine("b", "n2", dead), *hostingMachine("c", "n3", dead)}
	cases := map[string]struct {
		reason  string
		last    *v1alpha1.RoutingRemedy
		hosts   []int
		turn    int
		elapsed time.Duration
		want    *v1alpha1.RoutingRemedy
	}{
		"First":       {reason: "A machine advertises the service again.", want: remedy(advertise, "a")},
		"Waits":       {reason: "It takes a while to see the effect.", last: last(advertise, "a", 0, nil), elapsed: 89 * time.Second},
		"Second":      {reason: "Then another machine does.", last: last(advertise, "a", 0, nil), elapsed: 90 * time.Second, want: remedy(advertise, "c")},
		"Third":       {reason: "Then a machine restarts that serves nothing else.", last: last(advertise, "c", 0, nil), elapsed: 90 * time.Second, want: remedy(restart, "b")},
		"Only":        {reason: "A second machine is necessary for the second remedy.", hosts: []int{1}, last: last(advertise, "b", 0, nil), elapsed: 90 * time.Second, want: remedy(restart, "b")},
		"Gone":        {reason: "The machine that advertised it can be gone.", hosts: []int{1, 2}, last: last(advertise, "a", 0, nil), elapsed: 90 * time.Second, want: remedy(restart, "b")},
		"Serves":      {reason: "A machine that alone serves another service does not restart.", hosts: []int{0}, last: last(advertise, "a", 0, nil), elapsed: 90 * time.Second, want: remedy(restart, "")},
		"NoHost":      {reason: "Without a host there is nothing to do.", hosts: []int{}},
		"Pause":       {reason: "A restart takes a while.", last: last(restart, "b", 0, &lately), elapsed: 599 * time.Second},
		"Repeats":     {reason: "A service that nothing has helped is not given up.", last: last(restart, "b", 0, &lately), elapsed: 600 * time.Second, want: remedy(advertise, "a")},
		"Again":       {reason: "The next time it begins again.", last: last(restart, "b", -time.Minute, &lately), want: remedy(advertise, "a")},
		"NoThird":     {reason: "A machine restarts once an hour at most.", last: last(advertise, "c", 0, &lately), elapsed: 2 * time.Minute},
		"RepeatsThat": {reason: "Until then, machines advertise the service again from time to time.", last: last(advertise, "c", 0, &lately), elapsed: 10 * time.Minute, want: remedy(advertise, "a")},
		"HourLater":   {reason: "After that it may restart again.", last: last(advertise, "c", 0, &longAgo), elapsed: 2 * time.Minute, want: remedy(restart, "b")},
		"OthersFirst": {reason: "Machines of one cluster act at a time.", turn: 1, elapsed: 419 * time.Second},
		"OurTurn":     {reason: "The next cluster follows.", turn: 1, elapsed: 420 * time.Second, want: remedy(advertise, "a")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hosts := tc.hosts
			if hosts == nil {
				hosts = []int{0, 1, 2}
			}
			var got *v1alpha1.RoutingRemedy
			at := start.Add(tc.elapsed)
			if remedyDue(tc.last, start, tc.turn, at) {
				got = nextRemedy(tc.last, start, at, machines, hosts, "svc:web")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nnextRemedy(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTurn(t *testing.T) {
	others := []registry.Member{
		{Alive: true, Record: registry.Record{Cluster: "a", Health: &registry.Health{Ready: 1}}},
		{Alive: true, Record: registry.Record{Cluster: "b", Health: &registry.Health{}}},
		{Record: registry.Record{Cluster: "c", Health: &registry.Health{Ready: 1}}},
		{Alive: true, Record: registry.Record{Cluster: "z", Health: &registry.Health{Ready: 1}}},
	}
	for cluster, want := range map[string]int{"0": 0, "d": 1, "zz": 2} {
		if got := turnOf(cluster, others); got != want {
			t.Errorf("turnOf(%q): live clusters with hosts come first, in the order of their IDs: want %d, got %d", cluster, want, got)
		}
	}
}

// hostingMachine returns a machine that offers services.
func hostingMachine(name, node string, services ...v1alpha1.HostedService) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Annotations: map[string]string{meta.AnnotationNodeID: node}}}
	online := true
	m.Status.AtProvider.Online = &online
	m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: services}
	return m
}

func TestMayRestart(t *testing.T) {
	offered := func(name string, r v1alpha1.Routing) v1alpha1.HostedService {
		return v1alpha1.HostedService{Name: name, Advertised: true, Accepted: true, Routed: r}
	}
	dead, other := offered("svc:web", v1alpha1.RoutingFalse), offered("svc:db", v1alpha1.RoutingTrue)
	alone := hostingMachine("a", "n1", dead, other)
	cases := map[string]struct {
		reason   string
		machines []*v1alpha1.Machine
		want     bool
	}{
		"Only":     {reason: "A machine that hosts nothing else serves nobody.", machines: []*v1alpha1.Machine{hostingMachine("a", "n1", dead)}, want: true},
		"Serves":   {reason: "A machine that alone serves another service goes on.", machines: []*v1alpha1.Machine{alone}},
		"Replaced": {reason: "Another machine serves that meanwhile.", machines: []*v1alpha1.Machine{alone, hostingMachine("b", "n2", other)}, want: true},
		"Idle":     {reason: "One that is not accepted cannot.", machines: []*v1alpha1.Machine{alone, hostingMachine("b", "n2", v1alpha1.HostedService{Name: "svc:db", Advertised: true})}},
		"AllDead":  {reason: "Other dead services have nothing to lose.", machines: []*v1alpha1.Machine{hostingMachine("a", "n1", dead, offered("svc:db", v1alpha1.RoutingFalse))}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ms []v1alpha1.Machine
			for _, m := range tc.machines {
				ms = append(ms, *m)
			}
			if got := mayRestart(ms, 0, "svc:web"); got != tc.want {
				t.Errorf("\n%s\nmayRestart(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRemedies runs the controller through an outage.
func TestRemedies(t *testing.T) {
	dead := v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingFalse}
	m := hostingMachine("web-0", "n1", dead)
	controller := true
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0-config", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Machine", Name: "web-0", UID: m.GetUID(), Controller: &controller,
	}}}}
	kube := newKube(t, m, secret)
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts:    []tailscale.Host{{NodeID: "n1", State: tailscale.HostReady, Approval: "approved:auto"}},
		devices:  []tailscale.Device{{NodeID: "n1", Name: "web-0.tail1234.ts.net", ConnectedToControl: true}},
	}
	mg := object()
	clock := clocktesting.NewFakePassiveClock(apiTime)
	seen := deadReport
	seen.PrimarySeen = true
	routedOnce := routedReport
	routedOnce.PrimarySeen = true
	_, c := connect(t, f, nil, mg)
	record := &recorder{}
	c.hosts, c.pods, c.record = newHostsCache(time.Minute, clock), kubePods{kube: kube}, record
	action := func() v1alpha1.RemedyAction {
		t.Helper()
		s := &corev1.Secret{}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(secret), s); err != nil {
			t.Fatalf("Get(...): %v", err)
		}
		text := s.GetAnnotations()[meta.AnnotationRemedy]
		if text == "" {
			return ""
		}
		r := meta.Remedy{}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("Unmarshal(...): %v", err)
		}
		return r.Action
	}
	steps := []struct {
		reason string
		delay  time.Duration
		report report
		status corev1.ConditionStatus
		action v1alpha1.RemedyAction
		events []event.Reason
	}{
		{reason: "A service that control never reported a primary host for is left alone.", report: deadReport, status: corev1.ConditionUnknown, events: []event.Reason{reasonHostOnline}},
		{reason: "A service with a primary host is routed.", report: routedOnce, status: corev1.ConditionTrue},
		{reason: "Without one it is not, and a machine advertises it again.", delay: time.Minute, report: seen, status: corev1.ConditionFalse, action: v1alpha1.RemedyActionAdvertise, events: []event.Reason{reasonNoPrimaryHost, reasonAdvertising}},
		{reason: "The effect needs time.", delay: 80 * time.Second, report: seen, status: corev1.ConditionFalse, action: v1alpha1.RemedyActionAdvertise},
		{reason: "If there is none, the machine restarts.", delay: 10 * time.Second, report: seen, status: corev1.ConditionFalse, action: v1alpha1.RemedyActionRestart, events: []event.Reason{reasonRestarting}},
		{reason: "Then the service is routed.", delay: time.Minute, report: routedOnce, status: corev1.ConditionTrue, action: v1alpha1.RemedyActionRestart, events: []event.Reason{reasonHostPrimary}},
	}
	for _, s := range steps {
		clock.SetTime(clock.Now().Add(s.delay))
		c.reports = func(context.Context, string, string) (reports, error) { return reports{"n1": s.report}, nil }
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		o, err := e.Observe(t.Context(), mg)
		if err != nil {
			t.Fatalf("\n%s\nObserve(...): %v", s.reason, err)
		}
		if !o.ResourceUpToDate {
			if _, err := e.Update(t.Context(), mg); err != nil {
				t.Fatalf("\n%s\nUpdate(...): %v", s.reason, err)
			}
		}
		if diff := cmp.Diff(s.status, mg.GetCondition(meta.TypeRouted).Status); diff != "" {
			t.Errorf("\n%s\ncondition: -want, +got:\n%s", s.reason, diff)
		}
		if diff := cmp.Diff(s.action, action()); diff != "" {
			t.Errorf("\n%s\nremedy: -want, +got:\n%s", s.reason, diff)
		}
		if diff := cmp.Diff(s.events, record.take()); diff != "" {
			t.Errorf("\n%s\nevents: -want, +got:\n%s", s.reason, diff)
		}
	}
	if f.writes != 0 {
		t.Errorf("Update(...): remedies must not write the service")
	}
}

// TestRequestRefuses checks that a Secret of somebody else is not annotated.
func TestRequestRefuses(t *testing.T) {
	m := hostingMachine("web-0", "n1")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0-config"}}
	if err := (kubePods{kube: newKube(t, m, secret)}).request(t.Context(), m, meta.Remedy{Service: "svc:web"}); err == nil {
		t.Error("request(...): want an error for a Secret that the Machine does not control")
	}
}

func TestRemedying(t *testing.T) {
	at := time.Unix(1000, 0)
	cases := map[string]struct {
		reason string
		last   *v1alpha1.RoutingRemedy
		want   bool
	}{
		"None":   {reason: "Without a remedy, a service without hosts has none."},
		"Moment": {reason: "A remedy withdraws the service for a moment, on a busy machine for longer.", last: &v1alpha1.RoutingRemedy{Time: metav1.NewTime(at.Add(-time.Minute))}, want: true},
		"Over":   {reason: "After that, the service has no hosts.", last: &v1alpha1.RoutingRemedy{Time: metav1.NewTime(at.Add(-afterAdvertise))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := remedying(tc.last, at); got != tc.want {
				t.Errorf("\n%s\nremedying(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
