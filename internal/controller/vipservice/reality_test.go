// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestConfigured(t *testing.T) {
	approved := "approved:manual"
	cases := map[string]struct {
		reason string
		report report
		others bool
		host   tailscale.Host
		want   bool
	}{
		"Ready":       {reason: "For a machine of others, the API's state is enough.", others: true, host: tailscale.Host{State: tailscale.HostReady, Approval: approved}, want: true},
		"Withdrawn":   {reason: "A machine of ours that does not advertise the service does not host it, even if the API still lists it.", report: report{Accepted: true}, host: tailscale.Host{State: tailscale.HostReady, Approval: approved}},
		"Unheard":     {reason: "A machine of ours that does not know its approval yet answers no client.", report: report{Advertised: true}, host: tailscale.Host{State: tailscale.HostReady, Approval: approved}},
		"Pending":     {reason: "A machine of ours that waits for its approval serves all the same.", report: report{Advertised: true}, host: tailscale.Host{State: tailscale.HostReady, Approval: "not-approved"}, want: true},
		"NotReady":    {reason: "Without an agent's report, the API's state decides.", host: tailscale.Host{State: "needs-configuration", Approval: approved}},
		"Unknown":     {reason: "A machine of ours whose agent serves, and which control has accepted, serves.", report: report{Advertised: true, Accepted: true}, host: tailscale.Host{State: "whatever", Approval: approved}, want: true},
		"OnlyTaken":   {reason: "Control's acceptance alone does not show that a machine serves.", report: report{Accepted: true}, host: tailscale.Host{State: "whatever", Approval: approved}},
		"NotApproved": {reason: "Without an approval, a machine of ours does not count as serving.", report: report{Advertised: true, Accepted: true}, host: tailscale.Host{State: "whatever", Approval: "not-approved"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.host.NodeID = "n1"
			rs := reports{"n1": tc.report}
			if tc.others {
				rs = reports{}
			}
			if got := rs.configured(tc.host); got != tc.want {
				t.Errorf("\n%s\nconfigured(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRecords lists hosts of another cluster in states whose words nobody documents.
func TestRecords(t *testing.T) {
	member := func(alive bool, h *registry.Health) []registry.Member {
		return []registry.Member{
			{Record: registry.Record{Cluster: "far", Nodes: []string{"n1"}, Health: h}, Alive: alive},
			{Record: registry.Record{Cluster: "near", Nodes: []string{"n9"}, Health: &registry.Health{Ready: 1, Total: 1}}, Alive: true},
		}
	}
	cases := map[string]struct {
		reason  string
		members []registry.Member
		host    tailscale.Host
		want    bool
	}{
		"OtherWord":  {reason: "All machines of the cluster serve, whatever the word is.", members: member(true, &registry.Health{Ready: 2, Total: 2}), host: tailscale.Host{NodeID: "n1", State: "has-config, config-valid"}, want: true},
		"Drained":    {reason: "None of its machines serves, though the API still lists one.", members: member(true, &registry.Health{Total: 2}), host: tailscale.Host{NodeID: "n1", State: tailscale.HostReady}},
		"SomeReady":  {reason: "Some serve, and the word says that this one does.", members: member(true, &registry.Health{Ready: 1, Total: 2}), host: tailscale.Host{NodeID: "n1", State: tailscale.HostReady}, want: true},
		"SomeOther":  {reason: "Some serve, and nothing says that this one does.", members: member(true, &registry.Health{Ready: 1, Total: 2}), host: tailscale.Host{NodeID: "n1", State: "Partially configured"}},
		"Silent":     {reason: "The record of a cluster without a sign of life says nothing.", members: member(false, &registry.Health{Ready: 2, Total: 2}), host: tailscale.Host{NodeID: "n1", State: "pending"}},
		"NoHealth":   {reason: "A record without health says nothing.", members: member(true, nil), host: tailscale.Host{NodeID: "n1", State: tailscale.HostReady}, want: true},
		"ThisOne":    {reason: "The record of this cluster is not read: its agents know more.", members: member(true, nil), host: tailscale.Host{NodeID: "n9", State: "pending"}},
		"NotSharing": {reason: "Without a record, the word decides.", host: tailscale.Host{NodeID: "n1", State: tailscale.HostReady}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := serviceHosts([]tailscale.Host{tc.host}, nil, reports{}, peerHealthOf(tc.members, "near"), nil)
			if got[0].Configured != tc.want {
				t.Errorf("\n%s\nserviceHosts(...): want configured %t, got %+v", tc.reason, tc.want, got[0])
			}
		})
	}
}

func TestPreapprove(t *testing.T) {
	ours := reports{"n1": {}}
	tagged := []tailscale.Device{{NodeID: "n1", Name: "proxy-0.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true}}
	disabled := false
	cases := map[string]struct {
		reason   string
		mg       *v1alpha1.VIPService
		reports  reports
		devices  []tailscale.Device
		auto     bool
		forbid   bool
		approved []string
		calls    int
	}{
		"Machine": {
			reason: "A machine of ours is approved before it advertises: it may wait for a certificate, whose domain waits for the approval.",
			mg:     object(), reports: ours, devices: tagged, approved: []string{"n1"}, calls: 1,
		},
		"AutoApprover": {reason: "A machine that the policy file approves needs no approval by the provider.", mg: object(), reports: ours, devices: tagged, auto: true, calls: 1},
		"OtherTag": {
			reason: "A device without a host tag is not approved, even if an agent reports it.",
			mg:     object(), reports: ours, devices: []tailscale.Device{{NodeID: "n1", Name: "laptop", Tags: []string{"tag:other"}, ConnectedToControl: true}},
		},
		"Accepted":      {reason: "A machine that control has accepted needs no approval.", mg: object(), reports: reports{"n1": {Accepted: true}}, devices: tagged},
		"NoAutoApprove": {reason: "Nothing is approved without autoApprove.", mg: object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.AutoApprove = &disabled }), reports: ours, devices: tagged},
		"Refused":       {reason: "A refusal is no error before the machine advertises.", mg: object(), reports: ours, devices: tagged, forbid: true, calls: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": service()}, devices: tc.devices, autoApproved: tc.auto, forbid: tc.forbid}
			e, c := connect(t, f, tc.reports, tc.mg)
			for range 3 {
				o, err := e.Observe(t.Context(), tc.mg)
				if err != nil {
					t.Fatalf("\n%s\nObserve(...): %v", tc.reason, err)
				}
				if !o.ResourceUpToDate {
					if _, err := e.Update(t.Context(), tc.mg); err != nil {
						t.Fatalf("\n%s\nUpdate(...): %v", tc.reason, err)
					}
				}
				if e, err = c.Connect(t.Context(), tc.mg); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.approved, f.approved); diff != "" || f.approvalCalls != tc.calls {
				t.Errorf("\n%s\nwant %d questions, got %d; approved: -want, +got:\n%s", tc.reason, tc.calls, f.approvalCalls, diff)
			}
		})
	}
}

func TestMachineHasName(t *testing.T) {
	f := &fakeAPI{devices: []tailscale.Device{{NodeID: "n9", Name: "web.tail1234.ts.net"}}}
	mg := object()
	e, _ := connect(t, f, nil, mg)
	_, err := e.Observe(t.Context(), mg)
	if _, refused := registry.Refusal(err); !refused || mg.GetCondition(xpv2.TypeReady).Reason != meta.ReasonNameTaken {
		t.Errorf("Observe(...): want NameTaken, got %v, %+v", err, mg.GetCondition(xpv2.TypeReady))
	}

	// The list may be outdated, and a name stays taken for a while after its machine is gone.
	f.devices, f.occupied = nil, true
	if _, refused := registry.Refusal(e.(*external).mayCreate(t.Context(), object(failed))); !refused {
		t.Error("mayCreate(...): want a refusal after a create that failed")
	}

	// An object whose service never existed can be deleted.
	orphan := object(deleted, created)
	e, _ = connect(t, f, nil, orphan)
	if o, err := e.Observe(t.Context(), orphan); err != nil || o.ResourceExists {
		t.Errorf("Observe(...) of a deleted object: want that nothing exists, got %v, %v", o, err)
	}
	if _, err := e.Delete(t.Context(), orphan); err != nil {
		t.Errorf("Delete(...): %v", err)
	}
}

func TestLostAnnotations(t *testing.T) {
	bare := func(s *tailscale.Service) { s.Annotations = nil }
	const seen = "svc:web,100.64.0.1,fd7a::1"
	forged := func(v *v1alpha1.VIPService) {
		v.Status.AtProvider.Name, v.Status.AtProvider.Addresses = "svc:web", []string{"100.64.0.1", "fd7a::1"}
	}
	cases := map[string]struct {
		reason  string
		mg      *v1alpha1.VIPService
		product memo
		service tailscale.Service
		ours    bool
	}{
		"Ours":       {reason: "A service with our name and addresses, and without a mark, is ours.", mg: object(), product: seen, service: service(bare), ours: true},
		"Forged":     {reason: "A status that a user wrote makes no service ours.", mg: object(forged), service: service(bare)},
		"OtherName":  {reason: "Nor do addresses of a service with another name.", mg: object(forged), product: "svc:other,100.64.0.1,fd7a::1", service: service(bare)},
		"NeverSeen":  {reason: "A service that we have never seen is not ours.", mg: object(), service: service(bare)},
		"OtherAddrs": {reason: "A service with other addresses is not ours.", mg: object(), product: seen, service: service(bare, func(s *tailscale.Service) { s.Addrs = []string{"100.64.0.2", "fd7a::1"} })},
		"Theirs":     {reason: "A service with another mark is not ours.", mg: object(), product: seen, service: service(twinService)},
		"Operator":   {reason: "A service of Tailscale's operator is not ours.", mg: object(), product: seen, service: service(bare, func(s *tailscale.Service) { s.Annotations = map[string]string{} }, refs(`{"ownerRefs":[{"operatorID":"n1"}]}`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": tc.service}, product: tc.product}
			e, _ := connect(t, f, nil, tc.mg)
			o, err := e.Observe(t.Context(), tc.mg)
			if (err == nil) != tc.ours {
				t.Fatalf("\n%s\nObserve(...): %v, %v", tc.reason, o, err)
			}
			if !tc.ours {
				if _, err := e.Delete(t.Context(), tc.mg); err != nil || len(f.services) != 1 {
					t.Errorf("\n%s\nDelete(...): want the service left, got %v, %v", tc.reason, err, f.services)
				}
				return
			}
			if _, err := e.Update(t.Context(), tc.mg); err != nil {
				t.Fatal(err)
			}
			if got := f.services["svc:web"].Annotations[meta.AnnotationOwner]; got != owner {
				t.Errorf("\n%s\nUpdate(...): want the mark back, got %q", tc.reason, got)
			}
			// A tailnet that drops the annotations each time is reported.
			f.services["svc:web"] = tc.service
			if _, err := e.Observe(t.Context(), tc.mg); err != nil {
				t.Fatal(err)
			}
			if c := tc.mg.GetCondition(meta.TypeAnnotationsKept); c.Reason != meta.ReasonAnnotationsLost {
				t.Errorf("\n%s\nwant a condition, got %+v", tc.reason, c)
			}
			if _, err := e.Delete(t.Context(), tc.mg); err != nil || len(f.services) != 0 {
				t.Errorf("\n%s\nDelete(...): want the service gone, got %v, %v", tc.reason, err, f.services)
			}
		})
	}
}

// TestMadeIsRemembered shows that an object recognizes its service without annotations after it made
// or saw the service, and after that only.
func TestMadeIsRemembered(t *testing.T) {
	for name, services := range map[string]map[string]tailscale.Service{"Made": {}, "Seen": {"svc:web": service()}} {
		t.Run(name, func(t *testing.T) {
			f, mg := &fakeAPI{services: services}, object()
			e, _ := connect(t, f, nil, mg)
			o, err := e.Observe(t.Context(), mg)
			if err != nil {
				t.Fatal(err)
			}
			if !o.ResourceExists {
				if _, err := e.Create(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
			}
			s := f.services["svc:web"]
			if want := memo(identity(&s)); f.product != want {
				t.Errorf("want %q to be remembered, got %q", want, f.product)
			}
			s.Annotations = nil
			f.services["svc:web"] = s
			mg.Status = v1alpha1.VIPServiceStatus{}
			if o, err := e.Observe(t.Context(), mg); err != nil || !o.ResourceExists {
				t.Errorf("Observe(...): want the service to be recognized, got %v, %v", o, err)
			}
		})
	}
	f, mg := &fakeAPI{services: map[string]tailscale.Service{"svc:web": service(twinService)}}, object()
	e, _ := connect(t, f, nil, mg)
	if _, err := e.Observe(t.Context(), mg); err == nil || f.product != "" {
		t.Errorf("Observe(...) of the service of another: want an error and nothing to be remembered, got %v, %q", err, f.product)
	}
}

func TestReadvertised(t *testing.T) {
	c := newHostsCache(0, nil)
	for i, step := range []struct {
		count int32
		want  []string
	}{{count: 3}, {count: 3}, {count: 4, want: []string{"n1"}}, {count: 4}, {count: 0}, {count: 1, want: []string{"n1"}}} {
		if diff := cmp.Diff(step.want, c.readvertised("uid", reports{"n1": {Readvertised: step.count}})); diff != "" {
			t.Errorf("step %d: -want, +got:\n%s", i, diff)
		}
	}
}

// TestMissingMachine has an agent report the service of a machine whose device is gone.
func TestMissingMachine(t *testing.T) {
	f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": service()}, fresh: []tailscale.Device{}}
	mg := object()
	e, c := connect(t, f, reports{"n1": {}}, mg)
	for range 5 {
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		var err error
		if e, err = c.Connect(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	if f.freshLists != 1 {
		t.Errorf("Observe(...): want one fresh list of devices for a machine that is not in it, got %d", f.freshLists)
	}
}

func TestHostTagsMatch(t *testing.T) {
	device := tailscale.Device{NodeID: "n1", Name: "proxy-0", Tags: []string{"tag:k8s"}, ConnectedToControl: true}
	mg := object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:other"} })
	for i, step := range []struct {
		report report
		want   corev1.ConditionStatus
	}{
		{report: report{Advertised: true, Accepted: true}, want: corev1.ConditionUnknown},
		{report: report{Advertised: true}, want: corev1.ConditionFalse},
		{report: report{Advertised: true, Accepted: true}, want: corev1.ConditionTrue},
	} {
		observeTags(mg, reports{"n1": step.report}, []tailscale.Device{device})
		if got := mg.GetCondition(meta.TypeHostTagsMatch); got.Status != step.want {
			t.Errorf("step %d: want %s, got %+v", i, step.want, got)
		}
	}
}
