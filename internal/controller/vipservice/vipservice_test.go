// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

// apiTime is the time of the API's clock.
var apiTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeAPI is a tailnet in memory.
type fakeAPI struct {
	services map[string]tailscale.Service
	hosts    []tailscale.Host
	devices  []tailscale.Device

	occupied      bool // Every name belongs to a machine.
	autoApproved  bool
	approvalCalls int
	fresh         []tailscale.Device // The devices of a recent list, if they differ.
	err           error
	nameless      bool // No device shows the tailnet's name.

	freshLists int
	forbid     bool // Approvals are forbidden.

	// product is what the provider remembers of the object.
	product memo

	writes, hostCalls int
	approved          []string
}

// memo is what the provider remembers of an object.
type memo string

func (m *memo) Recall(context.Context) (string, error) { return string(*m), nil }

func (m *memo) Remember(_ context.Context, product string) error {
	*m = memo(product)
	return nil
}

// A fakeServices has the calls of services, and a fakeDevices those of devices.
type (
	fakeServices struct{ *fakeAPI }
	fakeDevices  struct{ *fakeAPI }
)

// areas returns the tailnet's API.
func (f *fakeAPI) areas() *api {
	return &api{services: fakeServices{f}, devices: fakeDevices{f}, tailnet: f}
}

func (f fakeServices) ServicesAt(context.Context, tailscale.Staleness) ([]tailscale.Service, time.Time, error) {
	var out []tailscale.Service
	for _, s := range f.services {
		out = append(out, s)
	}
	return out, apiTime, f.err
}

func (f fakeServices) Service(_ context.Context, name string) (*tailscale.Service, error) {
	if f.occupied {
		return nil, &tailscale.Error{Class: tailscale.ClassNameTaken, Status: 400, Message: "name exists but is not a service"}
	}
	s, ok := f.services[name]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return &s, f.err
}

func (f fakeServices) PutService(_ context.Context, s tailscale.Service) (*tailscale.Service, error) {
	if old, ok := f.services[s.Name]; ok && !cmp.Equal(old.Addrs, s.Addrs) {
		return nil, &tailscale.Error{Class: tailscale.ClassInvalid, Message: "addresses must be given back"}
	}
	if len(s.Addrs) == 0 {
		s.Addrs = []string{"fd7a::1", "100.64.0.1"}
	}
	f.services[s.Name] = s
	f.writes++
	return &s, f.err
}

func (f fakeServices) DeleteService(_ context.Context, name string) error {
	delete(f.services, name)
	f.writes++
	return f.err
}

func (f fakeServices) Hosts(context.Context, string) ([]tailscale.Host, error) {
	f.hostCalls++
	return f.hosts, f.err
}

func (f fakeServices) HostApproval(_ context.Context, _, id string) (tailscale.HostApproval, error) {
	f.approvalCalls++
	return tailscale.HostApproval{Approved: slices.Contains(f.approved, id), AutoApproved: f.autoApproved}, f.err
}

func (f fakeServices) ApproveHost(_ context.Context, _, id string) (bool, error) {
	if f.forbid {
		return false, nil
	}
	f.approved = append(f.approved, id)
	return true, f.err
}

func (f fakeDevices) DevicesAt(_ context.Context, staleness tailscale.Staleness) ([]tailscale.Device, time.Time, error) {
	if staleness != tailscale.Cached && f.fresh != nil {
		f.freshLists++
		return f.fresh, apiTime, f.err
	}
	return f.devices, apiTime, f.err
}

func (f *fakeAPI) Domain(context.Context) (string, error) {
	if f.nameless {
		return "", f.err
	}
	return "tail1234.ts.net", f.err
}

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

// twinService gives the service to another object of the same cluster.
func twinService(s *tailscale.Service) { s.Annotations[meta.AnnotationOwner] += "-twin" }

func adopting(v *v1alpha1.VIPService) {
	v.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
}

// refs sets the owner references of Tailscale's operator.
func refs(value string) func(*tailscale.Service) {
	return func(s *tailscale.Service) { s.Annotations[meta.AnnotationOwnerReferences] = value }
}

// record returns the record of a cluster that shares a service.
func record(name, cluster string) tailscale.Service {
	return tailscale.Service{Name: registry.RecordName(name, cluster), Annotations: map[string]string{
		meta.AnnotationSchemaVersion: meta.SchemaVersion,
		meta.AnnotationSharedService: name,
		meta.AnnotationRecord:        `{"service":"` + name + `","cluster":"` + cluster + `","updated":"2026-01-01T00:00:00Z"}`,
	}}
}

func deleted(v *v1alpha1.VIPService) {
	at := metav1.Now()
	v.DeletionTimestamp = &at
}

func failed(v *v1alpha1.VIPService) { xpmeta.SetExternalCreateFailed(v, time.Now()) }

func created(v *v1alpha1.VIPService) { xpmeta.SetExternalCreatePending(v, time.Now()) }

// connect runs Connect with a fake tailnet.
func connect(t *testing.T, f *fakeAPI, rs reports, mg *v1alpha1.VIPService) (managed.TypedExternalClient[*v1alpha1.VIPService], *connector) {
	t.Helper()
	c := &connector{
		connect: func(context.Context, resource.ModernManaged) (connection, error) {
			return connection{api: f.areas(), clusterID: "cluster", memory: &f.product}, nil
		},
		reports:   func(context.Context, string, string) (reports, error) { return rs, nil },
		pods:      kubePods{kube: newKube(t)},
		ports:     newPortsCache(),
		hosts:     newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime)),
		detaching: newDetaching(),
		record:    event.NewNopRecorder(),
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
	up := v1alpha1.VIPServiceObservation{
		Name: "svc:web", Addresses: []string{"100.64.0.1", "fd7a::1"}, DNSName: "web.tail1234.ts.net",
		Ports: []string{"tcp:443", "tcp:80"},
	}
	cases := map[string]struct {
		reason  string
		mg      *v1alpha1.VIPService
		service *tailscale.Service
		// nameless reports that no device shows the tailnet's name.
		nameless bool
		err      error
		want     want
	}{
		"Absent": {
			reason: "A service that is not in the list does not exist.",
			mg:     object(),
		},
		"UpToDate": {
			reason:  "Order of ports and annotations of others are no drift.",
			mg:      object(),
			service: ptr.To(service()),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonAvailable, status: up},
		},
		"Drift": {
			reason:  "A comment that somebody changed is drift.",
			mg:      object(),
			service: ptr.To(service(func(s *tailscale.Service) { s.Comment = "theirs" })),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "comment"}, reason: xpv2.ReasonAvailable, status: up},
		},
		"NoAddress": {
			reason:  "A service without an address is not ready.",
			mg:      object(),
			service: ptr.To(service(func(s *tailscale.Service) { s.Addrs = nil })),
			want: want{
				o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonCreating,
				status: v1alpha1.VIPServiceObservation{Name: "svc:web", DNSName: "web.tail1234.ts.net", Ports: up.Ports},
			},
		},
		"NoDevice": {
			reason:   "Without a device, the names of the tailnet and of the service are unknown.",
			mg:       object(),
			service:  ptr.To(service()),
			nameless: true,
			want: want{
				o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonAvailable,
				status: v1alpha1.VIPServiceObservation{Name: up.Name, Addresses: up.Addresses, Ports: up.Ports},
			},
		},
		"LastDeviceGone": {
			reason:   "A known name is kept.",
			mg:       object(func(v *v1alpha1.VIPService) { v.Status.AtProvider = up }),
			service:  ptr.To(service()),
			nameless: true,
			want:     want{o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, reason: xpv2.ReasonAvailable, status: up},
		},
		"ForeignServiceRefused": {
			reason:  "A service without our annotation is refused.",
			mg:      object(),
			service: ptr.To(service(foreignService)),
			want:    want{err: cmpopts.AnyError, reason: meta.ReasonForeignService},
		},
		"NameTaken": {
			reason:  "A service of another object of the cluster is refused, and the message names that object.",
			mg:      object(),
			service: ptr.To(service(twinService)),
			want:    want{err: cmpopts.AnyError, reason: meta.ReasonNameTaken},
		},
		"ForeignServiceAdopted": {
			reason:  "adoptionPolicy Adopt takes it over.",
			mg:      object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt }),
			service: ptr.To(service(foreignService)),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "annotations"}, reason: xpv2.ReasonAvailable, status: up},
		},
		"DeletedForeignIsLeft": {
			reason:  "A service of others does not block the deletion of our object.",
			mg:      object(deleted, created),
			service: ptr.To(service(foreignService)),
			want:    want{o: managed.ExternalObservation{ResourceUpToDate: true}},
		},
		"DeletedOurs": {
			reason:  "Our service exists until it is deleted.",
			mg:      object(deleted, created),
			service: ptr.To(service()),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}},
		},
		"ExclusiveOfAnOperator": {
			reason:  "A service that one resource of Tailscale's operator owns is not adopted.",
			mg:      object(adopting),
			service: ptr.To(service(foreignService, refs(`{"ownerRefs":[{"operatorID":"n1","resource":{"kind":"ProxyGroup"}}]}`))),
			want:    want{err: cmpopts.AnyError, reason: meta.ReasonForeignService},
		},
		"SharedByOthers": {
			reason:  "A record of another cluster keeps the name, whether the service exists or not.",
			mg:      object(adopting),
			service: ptr.To(record("svc:web", "other")),
			want:    want{err: cmpopts.AnyError, reason: meta.ReasonSharedByOthers},
		},
		"ObserveOnly": {
			reason: "A service of others may be observed.",
			mg: object(func(v *v1alpha1.VIPService) {
				v.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
			}),
			service: ptr.To(service(foreignService)),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "annotations"}, reason: xpv2.ReasonAvailable, status: up},
		},
		"AnnotationRemoved": {
			reason:  "An annotation that we set and no longer want is drift; those of others are not.",
			mg:      object(),
			service: ptr.To(service(func(s *tailscale.Service) { s.Annotations[meta.AnnotationManagedAnnotations] = `["theirs"]` })),
			want:    want{o: managed.ExternalObservation{ResourceExists: true, Diff: "annotations"}, reason: xpv2.ReasonAvailable, status: up},
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
			f := &fakeAPI{services: map[string]tailscale.Service{}, err: tc.err, nameless: tc.nameless}
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
		t.Fatalf("Connect(...): want the deletion of an object whose service was never made to need no config: %v", err)
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
		reason   string
		mg       *v1alpha1.VIPService
		existing *tailscale.Service
		want     tailscale.Service
		writes   int
		err      bool
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
			reason:   "A service that somebody else made in the meantime is not overwritten.",
			mg:       object(),
			existing: ptr.To(service(foreignService)),
			want:     service(foreignService),
			err:      true,
		},
		"UpdateKeepsAddressesAndAnnotations": {
			reason:   "Addresses and annotations of others are written back.",
			mg:       object(),
			existing: ptr.To(service(func(s *tailscale.Service) { s.Ports = []string{"tcp:1"} })),
			want:     service(func(s *tailscale.Service) { s.Ports = []string{"tcp:443", "tcp:80"} }),
			writes:   1,
		},
		"CoOwner": {
			reason:   "An object that takes over a service of Tailscale's operator becomes its co-owner, and keeps its content.",
			mg:       object(adopting),
			existing: ptr.To(service(foreignService, refs(`{"ownerRefs":[ {"operatorID":"n<1>"} ],"more":1}`))),
			want: service(func(s *tailscale.Service) {
				s.Ports = []string{"tcp:443", "tcp:80"}
				s.Annotations[meta.AnnotationOwnerReferences] = `{"more":1,"ownerRefs":[{"operatorID":"n<1>"},{"operatorID":"cluster"}]}`
			}),
			writes: 1,
		},
		"Annotations": {
			reason: "Annotations are set and recorded; annotations that are no longer wanted are removed.",
			mg:     object(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Annotations = map[string]string{"new": "1"} }),
			existing: ptr.To(service(func(s *tailscale.Service) {
				s.Annotations["old"], s.Annotations[meta.AnnotationManagedAnnotations] = "1", `["old"]`
			})),
			want: service(func(s *tailscale.Service) {
				s.Ports = []string{"tcp:443", "tcp:80"}
				s.Annotations["new"], s.Annotations[meta.AnnotationManagedAnnotations] = "1", `["new"]`
			}),
			writes: 1,
		},
		"NothingToDo": {
			reason:   "A service that matches the spec is not written.",
			mg:       object(),
			existing: ptr.To(service()),
			want:     service(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{}}
			if tc.existing != nil {
				f.services["svc:web"] = *tc.existing
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
		reason    string
		existing  *tailscale.Service
		remaining int
	}{
		"Ours":      {reason: "Our service is deleted.", existing: ptr.To(service())},
		"CoOwned":   {reason: "A service that others also own is left to them.", existing: ptr.To(service(refs(`{"ownerRefs":[{"operatorID":"n1"},{"operatorID":"cluster"}]}`))), remaining: 1},
		"LastOwner": {reason: "A service that only we own is deleted.", existing: ptr.To(service(refs(`{"ownerRefs":[{"operatorID":"cluster"}]}`)))},
		"Foreign":   {reason: "A service of somebody else stays.", existing: ptr.To(service(foreignService)), remaining: 1},
		"Gone":      {reason: "Deleting a service that is gone succeeds."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{}}
			if tc.existing != nil {
				f.services["svc:web"] = *tc.existing
			}
			mg := object(deleted, created)
			e, _ := connect(t, f, nil, mg)
			if _, err := e.Delete(t.Context(), mg); err != nil {
				t.Errorf("\n%s\nDelete(...): %v", tc.reason, err)
			}
			if len(f.services) != tc.remaining {
				t.Errorf("\n%s\nDelete(...): want %d services, got %v", tc.reason, tc.remaining, f.services)
			}
			if name == "CoOwned" {
				want := map[string]string{meta.AnnotationOwnerReferences: `{"ownerRefs":[{"operatorID":"n1"}]}`, "theirs": "kept"}
				if diff := cmp.Diff(want, f.services["svc:web"].Annotations); diff != "" {
					t.Errorf("\n%s\nDelete(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestPoll(t *testing.T) {
	c := &connector{hosts: newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime))}
	mg := object()
	if got := poll(c.hosts, newPortsCache())(mg, time.Minute); got != pollUnsettled {
		t.Errorf("poll(...): want a quick look at a service that is not ready, got %s", got)
	}
	mg.SetConditions(xpv2.Available())
	mg.Status.AtProvider.DNSName = "web.tail1234.ts.net"
	if got := poll(c.hosts, newPortsCache())(mg, time.Minute); got != time.Minute {
		t.Errorf("poll(...): want the interval, got %s", got)
	}
}
