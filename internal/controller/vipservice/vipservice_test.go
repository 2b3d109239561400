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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

// fakeAPI is a tailnet in memory.
type fakeAPI struct {
	services map[string]tailscale.Service
	hosts    []tailscale.Host
	devices  []tailscale.Device
	err      error

	writes, hostCalls int
	approved          []string
}

func (f *fakeAPI) Services(context.Context, time.Duration) ([]tailscale.Service, error) {
	var out []tailscale.Service
	for _, s := range f.services {
		out = append(out, s)
	}
	return out, f.err
}

func (f *fakeAPI) Service(_ context.Context, name string) (*tailscale.Service, error) {
	s, ok := f.services[name]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return &s, f.err
}

func (f *fakeAPI) PutService(_ context.Context, s tailscale.Service) error {
	if old, ok := f.services[s.Name]; ok && !cmp.Equal(old.Addrs, s.Addrs) {
		return &tailscale.Error{Class: tailscale.ClassInvalid, Message: "addresses must be given back"}
	}
	if len(s.Addrs) == 0 {
		s.Addrs = []string{"fd7a::1", "100.64.0.1"}
	}
	f.services[s.Name] = s
	f.writes++
	return f.err
}

func (f *fakeAPI) DeleteService(_ context.Context, name string) error {
	delete(f.services, name)
	f.writes++
	return f.err
}

func (f *fakeAPI) Hosts(context.Context, string) ([]tailscale.Host, error) {
	f.hostCalls++
	return f.hosts, f.err
}

func (f *fakeAPI) ApproveHost(_ context.Context, _, id string) error {
	f.approved = append(f.approved, id)
	return f.err
}

func (f *fakeAPI) Devices(context.Context, time.Duration) ([]tailscale.Device, error) {
	return f.devices, f.err
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return "tail1234.ts.net", f.err }

const owner = "cluster/default/web"

func object(change ...func(*v1alpha1.VIPService)) *v1alpha1.VIPService {
	v := &v1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid"},
		Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{
			Name: "svc:web", Ports: []v1alpha1.ServicePort{"tcp:443", "tcp:80"}, Comment: "hello",
			Tags: []v1alpha1.Tag{"tag:web"}, HostTags: []v1alpha1.Tag{"tag:k8s"},
		}},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

func service(change ...func(*tailscale.Service)) tailscale.Service {
	s := tailscale.Service{
		Name: "svc:web", Addrs: []string{"fd7a::1", "100.64.0.1"}, Comment: "hello",
		Ports: []string{"tcp:80", "tcp:443"}, Tags: []string{"tag:web"},
		Annotations: map[string]string{meta.AnnotationOwner: owner, "theirs": "kept"},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func foreignService(s *tailscale.Service) { s.Annotations = map[string]string{"theirs": "kept"} }

func deleted(v *v1alpha1.VIPService) {
	now := metav1.Now()
	v.DeletionTimestamp = &now
}

func created(v *v1alpha1.VIPService) { xpmeta.SetExternalCreatePending(v, time.Now()) }

// connect runs Connect with a fake tailnet.
func connect(t *testing.T, f *fakeAPI, cl claims, mg *v1alpha1.VIPService) (managed.TypedExternalClient[*v1alpha1.VIPService], *connector) {
	t.Helper()
	c := &connector{
		connect: func(context.Context, resource.ModernManaged) (connection, error) {
			return connection{api: f, clusterID: "cluster"}, nil
		},
		claims: func(context.Context, string, string) (claims, error) { return cl, nil },
		hosts:  newHostsCache(time.Hour),
		record: event.NewNopRecorder(),
	}
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): %v", err)
	}
	return e, c
}

func TestObserve(t *testing.T) {
	type want struct {
		o      managed.ExternalObservation
		err    error
		reason xpv2.ConditionReason
		status v1alpha1.VIPServiceObservation
	}
	up := v1alpha1.VIPServiceObservation{Name: "svc:web", Addresses: []string{"100.64.0.1", "fd7a::1"}, DNSName: "web.tail1234.ts.net"}
	cases := map[string]struct {
		reason  string
		mg      *v1alpha1.VIPService
		service *tailscale.Service
		err     error
		want    want
	}{
		"Absent": {
			reason: "A service that is not in the list does not exist.",
			mg:     object(),
		},
		"UpToDate": {
			reason:  "Order of ports and annotations of others are no drift.",
			mg:      object(),
			service: ptr(service()),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonAvailable, status: up},
		},
		"Drift": {
			reason:  "A comment that somebody changed is drift.",
			mg:      object(),
			service: ptr(service(func(s *tailscale.Service) { s.Comment = "theirs" })),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "comment"}, reason: xpv2.ReasonAvailable, status: up},
		},
		"NoAddress": {
			reason:  "A service without an address is not ready.",
			mg:      object(),
			service: ptr(service(func(s *tailscale.Service) { s.Addrs = nil })),
			want: want{
				o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonCreating,
				status: v1alpha1.VIPServiceObservation{Name: "svc:web", DNSName: "web.tail1234.ts.net"},
			},
		},
		"ForeignServiceRefused": {
			reason:  "A service without our annotation is refused.",
			mg:      object(),
			service: ptr(service(foreignService)),
			want:    want{err: cmpopts.AnyError, reason: meta.ReasonForeignService},
		},
		"ForeignServiceAdopted": {
			reason:  "adoptionPolicy Adopt takes it over.",
			mg:      object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt }),
			service: ptr(service(foreignService)),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "annotations"}, reason: xpv2.ReasonAvailable, status: up},
		},
		"DeletedForeignIsLeft": {
			reason:  "A foreign service does not keep our object.",
			mg:      object(deleted, created),
			service: ptr(service(foreignService)),
			want:    want{o: managed.ExternalObservation{ResourceUpToDate: true}},
		},
		"DeletedOurs": {
			reason:  "Our service exists until it is deleted.",
			mg:      object(deleted, created),
			service: ptr(service()),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}},
		},
		"ErrList": {
			reason: "An error of the API is returned.",
			mg:     object(),
			err:    errBoom,
			want:   want{err: errBoom},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{}, err: tc.err}
			if tc.service != nil {
				f.services[tc.service.Name] = *tc.service
			}
			e, _ := connect(t, f, nil, tc.mg)
			got, err := e.Observe(t.Context(), tc.mg)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.o, got); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.reason, tc.mg.GetCondition(xpv2.TypeReady).Reason); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want reason, +got reason:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.status, tc.mg.Status.AtProvider, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want status, +got status:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConnectDeletedNeverCreated(t *testing.T) {
	c := &connector{connect: func(context.Context, resource.ModernManaged) (connection, error) { return connection{}, errBoom }}
	mg := object(deleted)
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): a service that was never made must go without a config: %v", err)
	}
	o, err := e.Observe(t.Context(), mg)
	if err != nil || o.ResourceExists {
		t.Errorf("Observe(...): want nothing, got %v, %v", o, err)
	}
	if _, err := c.Connect(t.Context(), object(deleted, created)); !errors.Is(err, errBoom) {
		t.Errorf("Connect(...): want the error for a service that may exist, got: %v", err)
	}
}

func TestWrite(t *testing.T) {
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.VIPService
		have   *tailscale.Service
		want   tailscale.Service
		writes int
		err    bool
	}{
		"Create": {
			reason: "A new service gets our annotation.",
			mg:     object(),
			want: service(func(s *tailscale.Service) {
				s.Ports = []string{"tcp:443", "tcp:80"}
				delete(s.Annotations, "theirs")
			}),
			writes: 1,
		},
		"CreateFoundForeign": {
			reason: "A service that somebody made meanwhile is not overwritten.",
			mg:     object(),
			have:   ptr(service(foreignService)),
			want:   service(foreignService),
			err:    true,
		},
		"UpdateKeepsAddressesAndAnnotations": {
			reason: "Addresses and others' annotations are given back.",
			mg:     object(),
			have:   ptr(service(func(s *tailscale.Service) { s.Ports = []string{"tcp:1"} })),
			want:   service(func(s *tailscale.Service) { s.Ports = []string{"tcp:443", "tcp:80"} }),
			writes: 1,
		},
		"NothingToDo": {
			reason: "A service that is as wanted is not written.",
			mg:     object(),
			have:   ptr(service()),
			want:   service(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{}}
			if tc.have != nil {
				f.services["svc:web"] = *tc.have
			}
			e, _ := connect(t, f, nil, tc.mg)
			_, err := e.Update(t.Context(), tc.mg)
			if (err != nil) != tc.err {
				t.Errorf("\n%s\nUpdate(...): want error %t, got: %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, f.services["svc:web"]); diff != "" {
				t.Errorf("\n%s\nUpdate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if f.writes != tc.writes {
				t.Errorf("\n%s\nUpdate(...): want %d writes, got %d", tc.reason, tc.writes, f.writes)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason string
		have   *tailscale.Service
		left   int
	}{
		"Ours":    {reason: "Our service is deleted.", have: ptr(service())},
		"Foreign": {reason: "Somebody else's is left.", have: ptr(service(foreignService)), left: 1},
		"Gone":    {reason: "Deleting what is gone succeeds."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{}}
			if tc.have != nil {
				f.services["svc:web"] = *tc.have
			}
			mg := object(deleted, created)
			e, _ := connect(t, f, nil, mg)
			if _, err := e.Delete(t.Context(), mg); err != nil {
				t.Errorf("\n%s\nDelete(...): %v", tc.reason, err)
			}
			if len(f.services) != tc.left {
				t.Errorf("\n%s\nDelete(...): want %d services, got %v", tc.reason, tc.left, f.services)
			}
		})
	}
}

func TestApproval(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts: []tailscale.Host{
			{NodeID: "n2", Configured: true, Approval: "not-approved"},
			{NodeID: "n1", Configured: true, Approval: "approved:auto"},
			{NodeID: "n3", Configured: true, Approval: "not-approved"},
		},
		devices: []tailscale.Device{
			{NodeID: "n1", Name: "a.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true},
			{NodeID: "n2", Name: "b.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true},
			{NodeID: "n3", Name: "c.tail1234.ts.net", Tags: []string{"tag:other"}},
		},
	}
	mg := object()
	e, _ := connect(t, f, nil, mg)
	o, err := e.Observe(t.Context(), mg)
	if err != nil || o.ResourceUpToDate {
		t.Fatalf("Observe(...): want an approval to be due, got %v, %v", o, err)
	}
	if _, err := e.Update(t.Context(), mg); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	if diff := cmp.Diff([]string{"n2"}, f.approved); diff != "" {
		t.Errorf("Update(...): only hosts with a host tag are approved: -want, +got:\n%s", diff)
	}
	want := []v1alpha1.ServiceHost{
		{NodeID: "n1", Name: "a.tail1234.ts.net", Online: true, Configured: true, Approval: "approved:auto"},
		{NodeID: "n2", Name: "b.tail1234.ts.net", Online: true, Configured: true, Approval: "approved:manual"},
		{NodeID: "n3", Name: "c.tail1234.ts.net", Configured: true, Approval: "not-approved"},
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
		t.Errorf("Observe(...): nothing is approved without autoApprove, got %v, %v", o, err)
	}
}

func TestHostsAreAskedWhileUnsettled(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service()},
		hosts:    []tailscale.Host{{NodeID: "n1", Configured: true, Approval: "approved:auto"}},
		devices:  []tailscale.Device{{NodeID: "n1", ConnectedToControl: true}},
	}
	mg := object()
	cl := claims{"n1": {Advertised: true}}
	_, c := connect(t, f, cl, mg)
	observe := func() {
		t.Helper()
		c.claims = func(context.Context, string, string) (claims, error) { return cl, nil }
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	observe()
	observe()
	if f.hostCalls != 2 || c.poll(mg, time.Minute) != pollUnsettled {
		t.Errorf("want hosts to be asked while control has not accepted one, got %d calls", f.hostCalls)
	}
	cl = claims{"n1": {Advertised: true, Accepted: true}}
	observe()
	observe()
	if f.hostCalls != 2 || c.poll(mg, time.Minute) != time.Minute {
		t.Errorf("want settled hosts to be remembered, got %d calls, poll %s", f.hostCalls, c.poll(mg, time.Minute))
	}
	cl = claims{"n1": {}}
	observe()
	if f.hostCalls != 3 {
		t.Errorf("want hosts to be asked when an agent withdraws, got %d calls", f.hostCalls)
	}
}

func TestAgentClaims(t *testing.T) {
	machine := func(id string, services ...v1alpha1.HostedService) v1alpha1.Machine {
		m := v1alpha1.Machine{}
		m.Status.AtProvider.NodeID = id
		m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: services}
		return m
	}
	got := agentClaims([]v1alpha1.Machine{
		machine("n1", v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true}, v1alpha1.HostedService{Name: "svc:other"}),
		machine("", v1alpha1.HostedService{Name: "svc:web"}),
		{},
	}, "svc:web")
	if diff := cmp.Diff(claims{"n1": {Advertised: true, Accepted: true}}, got); diff != "" {
		t.Errorf("agentClaims(...): -want, +got:\n%s", diff)
	}
}

func TestTransitions(t *testing.T) {
	host := func(online bool) []v1alpha1.ServiceHost {
		return []v1alpha1.ServiceHost{{NodeID: "n1", Name: "a", Online: online}}
	}
	cases := map[string]struct {
		reason        string
		before, after []v1alpha1.ServiceHost
		want          string
	}{
		"Joined":  {reason: "A new host that is online is told.", after: host(true), want: "HostOnline"},
		"Lost":    {reason: "A host that went offline is told.", before: host(true), after: host(false), want: "HostOffline"},
		"Same":    {reason: "Nothing new is not told.", before: host(true), after: host(true)},
		"Offline": {reason: "A new host that is offline is not told.", after: host(false)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(tc.before, tc.after) {
				got = append(got, string(e.Reason))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ",")); diff != "" {
				t.Errorf("\n%s\ntransitions(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoll(t *testing.T) {
	c := &connector{hosts: newHostsCache(time.Hour)}
	mg := object()
	if got := c.poll(mg, time.Minute); got != pollUnsettled {
		t.Errorf("poll(...): want a quick look at a service that is not ready, got %s", got)
	}
	mg.SetConditions(xpv2.Available())
	mg.Status.AtProvider.DNSName = "web.tail1234.ts.net"
	if got := c.poll(mg, time.Minute); got != time.Minute {
		t.Errorf("poll(...): want the interval, got %s", got)
	}
	mg.Status.AtProvider.Hosts = []v1alpha1.ServiceHost{{Online: true, Configured: true, Approval: "not-approved"}}
	if got := c.poll(mg, time.Minute); got != pollUnsettled || mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("poll(...): want a quick look at a host that waits, got %s", got)
	}
}

func ptr[T any](v T) *T { return &v }
