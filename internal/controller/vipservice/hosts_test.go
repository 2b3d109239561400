// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestApproval(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts: []tailscale.Host{
			{NodeID: "n2", State: tailscale.HostReady, Approval: "not-approved"},
			{NodeID: "n1", State: tailscale.HostReady, Approval: "approved:auto"},
			{NodeID: "n3", State: tailscale.HostReady, Approval: "not-approved"},
			{NodeID: "n4", State: tailscale.HostReady, Approval: "not-approved"},
		},
		devices: []tailscale.Device{
			{NodeID: "n1", Name: "a.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true},
			{NodeID: "n2", Name: "b.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true},
			{NodeID: "n3", Name: "c.tail1234.ts.net", Tags: []string{"tag:other"}},
			{NodeID: "n4", Name: "d.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true},
		},
	}
	mg := object()
	// n4 is a machine of another tenant with the same tag.
	e, _ := connect(t, f, reports{"n1": {Advertised: true, Accepted: true}, "n2": {Advertised: true}, "n3": {Advertised: true}}, mg)
	o, err := e.Observe(t.Context(), mg)
	if err != nil || o.ResourceUpToDate {
		t.Fatalf("Observe(...): want an approval to be due, got %v, %v", o, err)
	}
	if _, err := e.Update(t.Context(), mg); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	if diff := cmp.Diff([]string{"n2"}, f.approved); diff != "" {
		t.Errorf("Update(...): only machines of ours with a host tag are approved: -want, +got:\n%s", diff)
	}
	want := []v1alpha1.ServiceHost{
		{NodeID: "n1", Name: "a.tail1234.ts.net", Local: true, Online: true, Configured: true, State: tailscale.HostReady, Approval: "approved:auto"},
		{NodeID: "n2", Name: "b.tail1234.ts.net", Local: true, Online: true, Configured: true, State: tailscale.HostReady, Approval: "approved:manual"},
		{NodeID: "n3", Name: "c.tail1234.ts.net", Local: true, Configured: true, State: tailscale.HostReady, Approval: "not-approved"},
		{NodeID: "n4", Name: "d.tail1234.ts.net", Online: true, Configured: true, State: tailscale.HostReady, Approval: "not-approved"},
	}
	if diff := cmp.Diff(want, mg.Status.AtProvider.Hosts); diff != "" {
		t.Errorf("hosts: -want, +got:\n%s", diff)
	}
	if f.writes != 0 {
		t.Errorf("Update(...): an approval must not write the service")
	}

	off := false
	mg = object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.AutoApprove = &off })
	e, _ = connect(t, f, nil, mg)
	if o, err := e.Observe(t.Context(), mg); err != nil || !o.ResourceUpToDate {
		t.Errorf("Observe(...): want no approval without autoApprove, got %v, %v", o, err)
	}
}

func TestApprovalForbidden(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts:    []tailscale.Host{{NodeID: "n1", State: tailscale.HostReady, Approval: "not-approved"}},
		devices:  []tailscale.Device{{NodeID: "n1", Tags: []string{"tag:k8s"}, ConnectedToControl: true}},
		forbid:   true,
	}
	mg := object()
	e, _ := connect(t, f, reports{"n1": {Advertised: true}}, mg)
	if _, err := e.Observe(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	_, err := e.Update(t.Context(), mg)
	c := mg.GetCondition(meta.TypeApproved)
	const advice = `"autoApprovers": {"services": {"svc:web": ["tag:k8s"]}}`
	if err == nil || c.Reason != meta.ReasonApprovalForbidden || !strings.Contains(c.Message, advice) {
		t.Errorf("Update(...): want what to put into the policy file, got %v, %+v", err, c)
	}
	f.hosts[0].Approval = "approved:auto"
	mg.Status.AtProvider.Hosts = nil
	if e, _ = connect(t, f, reports{"n1": {Advertised: true}}, mg); e != nil {
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	if c := mg.GetCondition(meta.TypeApproved); c.Reason != meta.ReasonHostsApproved {
		t.Errorf("Observe(...): want the condition to be fixed, got %+v", c)
	}
}

func TestHostsAreAskedWhileUnsettled(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts:    []tailscale.Host{{NodeID: "n1", State: tailscale.HostReady, Approval: "approved:auto"}},
		devices:  []tailscale.Device{{NodeID: "n1", ConnectedToControl: true}},
	}
	mg := object()
	rs := reports{"n1": {Advertised: true}}
	_, c := connect(t, f, rs, mg)
	clock := clocktesting.NewFakePassiveClock(apiTime)
	c.hosts = newHostsCache(time.Minute, clock)
	steps := []struct {
		reason string
		delay  time.Duration
		rs     reports
		calls  int
		poll   time.Duration
	}{
		{reason: "Control has not accepted the host, so the API is asked.", rs: reports{"n1": {Advertised: true}}, calls: 1, poll: firstAsk},
		{reason: "The API is not asked again at once.", rs: reports{"n1": {Advertised: true}}, calls: 1, poll: firstAsk},
		{reason: "The API is asked again after some seconds.", delay: firstAsk, rs: reports{"n1": {Advertised: true}}, calls: 2, poll: 2 * firstAsk},
		{reason: "Then the interval grows.", delay: firstAsk, rs: reports{"n1": {Advertised: true}}, calls: 2, poll: firstAsk},
		{reason: "A changed number of healthy backends needs no request.", rs: reports{"n1": {Advertised: true, Healthy: 1}}, calls: 2, poll: firstAsk},
		{reason: "A new report of the agent settles the service.", rs: reports{"n1": {Advertised: true, Accepted: true}}, calls: 2, poll: time.Minute},
		{reason: "The API is asked for a settled service only in turn.", delay: 10 * time.Minute, rs: reports{"n1": {Advertised: true, Accepted: true}}, calls: 3, poll: time.Minute},
		{reason: "The API may list a host that has withdrawn for ever, so it is not asked.", rs: reports{"n1": {}}, calls: 3, poll: time.Minute},
	}
	for _, s := range steps {
		clock.SetTime(clock.Now().Add(s.delay))
		c.reports = func(context.Context, string, string) (reports, error) { return s.rs, nil }
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		if got := poll(c.hosts, c.ports)(mg, time.Minute); f.hostCalls != s.calls || got != s.poll {
			t.Errorf("%s\nwant %d calls and poll %s, got %d and %s", s.reason, s.calls, s.poll, f.hostCalls, got)
		}
	}
}

func TestHostThatJustJoined(t *testing.T) {
	settled := reports{"n1": {Advertised: true, Accepted: true}}
	cases := map[string]struct {
		reason  string
		reports reports
		fresh   []tailscale.Device
		lists   int
		online  bool
	}{
		"Joined": {
			reason:  "A list from before a host joined must not hide it.",
			reports: settled, fresh: []tailscale.Device{{NodeID: "n1", Name: "n1.tail1234.ts.net", ConnectedToControl: true}}, lists: 1, online: true,
		},
		"Offline": {
			reason:  "An offline host is shown as offline, and a fresh list is requested once.",
			reports: settled, fresh: []tailscale.Device{{NodeID: "n1", Name: "n1.tail1234.ts.net"}}, lists: 1,
		},
		"NotOurs": {
			reason: "Hosts of others are not expected to change.",
			fresh:  []tailscale.Device{{NodeID: "n1", ConnectedToControl: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{
				services: map[string]tailscale.Service{"svc:web": service()},
				hosts:    []tailscale.Host{{NodeID: "n1", State: tailscale.HostReady, Approval: "approved:auto"}},
				devices:  []tailscale.Device{{NodeID: "other", ConnectedToControl: true}},
				fresh:    tc.fresh,
			}
			mg := object()
			_, c := connect(t, f, tc.reports, mg)
			c.hosts = newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime))
			for i := range 3 {
				e, err := c.Connect(t.Context(), mg)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Observe(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
				if got := mg.Status.AtProvider.Hosts[0].Online; i == 0 && got != tc.online {
					t.Errorf("\n%s\nonline: want %t, got %t", tc.reason, tc.online, got)
				}
			}
			if f.freshLists != tc.lists {
				t.Errorf("\n%s\nwant %d fresh lists, got %d", tc.reason, tc.lists, f.freshLists)
			}
		})
	}
}

func TestHostsInTurn(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(apiTime)
	c := newHostsCache(time.Minute, clock)
	seen := map[int]int{}
	const services, polls = 30, 40
	for range polls {
		calls := 0
		for i := range services {
			uid := types.UID(rune('a' + i))
			if c.due(uid, nil, nil) {
				c.asked(uid, nil, nil)
				seen[i]++
				calls++
			}
		}
		if calls > inTurn {
			t.Fatalf("want at most %d calls a poll, got %d", inTurn, calls)
		}
		clock.SetTime(clock.Now().Add(time.Minute))
	}
	if len(seen) != services {
		t.Errorf("want every service to get its turn in %d polls, got %d", polls, len(seen))
	}
}

func TestAgentReports(t *testing.T) {
	machine := func(id string, services ...v1alpha1.HostedService) v1alpha1.Machine {
		m := v1alpha1.Machine{}
		m.SetAnnotations(map[string]string{meta.AnnotationNodeID: id})
		m.SetLabels(map[string]string{meta.LabelEndpoints: "proxies"})
		// A node ID that the pod wrote.
		m.Status.AtProvider.NodeID = "victim"
		m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: services}
		return m
	}
	got := agentReports([]v1alpha1.Machine{
		machine("n1", v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true}, v1alpha1.HostedService{Name: "svc:other"}),
		machine("", v1alpha1.HostedService{Name: "svc:web"}),
		{},
	}, "svc:web")
	if diff := cmp.Diff(reports{"n1": {Advertised: true, Accepted: true, Endpoints: "proxies"}}, got); diff != "" {
		t.Errorf("agentReports(...): -want, +got:\n%s", diff)
	}
	hosts := serviceHosts([]tailscale.Host{{NodeID: "n1"}, {NodeID: "others"}}, []tailscale.Device{{NodeID: "n1", Name: "renamed"}}, got, nil, nil)
	for _, h := range hosts {
		if h.Local != (h.NodeID == "n1") || (h.Endpoints == "proxies") != h.Local {
			t.Errorf("want n1 alone to be of the endpoints, by its node ID, got %+v", h)
		}
	}
}

func TestCertificate(t *testing.T) {
	machine := func(reason, message string) v1alpha1.Machine {
		m := v1alpha1.Machine{}
		m.SetAnnotations(map[string]string{meta.AnnotationNodeID: "n-" + message})
		m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{{Name: "svc:web", Reason: reason, Message: message}}}
		return m
	}
	f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": service()}}
	mg := object()
	steps := []struct {
		reason   string
		machines []v1alpha1.Machine
		want     xpv2.Condition
	}{
		{
			reason: "A service without a problem has no such condition.", machines: []v1alpha1.Machine{machine("", "Waiting for tailscaled")},
			want: xpv2.Condition{Type: meta.TypeCertificateReady, Status: corev1.ConditionUnknown},
		},
		{
			reason:   "One of several problems is reported, always the same one.",
			machines: []v1alpha1.Machine{machine("CertificateNotIssued", "d"), machine("CertificateNotIssued", "c"), machine("HTTPSDisabled", "b"), machine("", "a")},
			want:     xpv2.Condition{Type: meta.TypeCertificateReady, Status: corev1.ConditionFalse, Reason: meta.ReasonCertificateNotIssued, Message: "c"},
		},
		{
			reason: "Without problems the certificate is fine.", machines: []v1alpha1.Machine{machine("", "")},
			want: xpv2.Condition{Type: meta.TypeCertificateReady, Status: corev1.ConditionTrue, Reason: meta.ReasonCertificateReady},
		},
	}
	for _, st := range steps {
		e, _ := connect(t, f, agentReports(st.machines, "svc:web"), mg)
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatalf("\n%s\nObserve(...): %v", st.reason, err)
		}
		if diff := cmp.Diff(st.want, mg.GetCondition(meta.TypeCertificateReady), cmpopts.IgnoreFields(xpv2.Condition{}, "LastTransitionTime")); diff != "" {
			t.Errorf("\n%s\ncondition: -want, +got:\n%s", st.reason, diff)
		}
	}
}

func TestTransitions(t *testing.T) {
	host := func(online bool) []v1alpha1.ServiceHost {
		return []v1alpha1.ServiceHost{{NodeID: "n1", Name: "a", Online: online}}
	}
	cases := map[string]struct {
		reason       string
		old, updated []v1alpha1.ServiceHost
		want         string
	}{
		"Joined":  {reason: "A new host that is online causes an event.", updated: host(true), want: "HostOnline"},
		"Lost":    {reason: "A host that went offline causes an event.", old: host(true), updated: host(false), want: "HostOffline"},
		"Same":    {reason: "An unchanged host causes no event.", old: host(true), updated: host(true)},
		"Offline": {reason: "A new host that is offline causes no event.", updated: host(false)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(tc.old, tc.updated) {
				got = append(got, string(e.Reason))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ",")); diff != "" {
				t.Errorf("\n%s\ntransitions(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHostsAreListedWhileUnknown(t *testing.T) {
	c := newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime))
	if !c.due("web", nil, nil) {
		t.Fatal("a settled service has its turn, want it to be asked")
	}
	c.failed("web")
	for _, other := range []types.UID{"a", "b", "c"} {
		c.due(other, nil, nil)
	}
	if !c.due("web", nil, nil) {
		t.Error("the request failed: want it repeated until it succeeds, because the condition with the reason would go otherwise")
	}
	c.asked("web", nil, nil)
	if c.due("web", nil, nil) {
		t.Error("asking no longer fails: want it to wait for its turn")
	}
}
