// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

type fakeAPI struct {
	devices  []tailscale.Device
	services []tailscale.Service
	at       time.Time
	err      error
	ages     []tailscale.Staleness
}

// A fakeDevices has the calls of devices, and a fakeServices those of services.
type (
	fakeDevices  struct{ *fakeAPI }
	fakeServices struct{ *fakeAPI }
)

// areas returns the tailnet's API.
func (f *fakeAPI) areas() api {
	return api{devices: fakeDevices{f}, services: fakeServices{f}, tailnet: f}
}

func (f fakeDevices) DevicesAt(_ context.Context, staleness tailscale.Staleness) ([]tailscale.Device, time.Time, error) {
	f.ages = append(f.ages, staleness)
	return f.devices, f.at, f.err
}

func (f fakeServices) ServicesAt(_ context.Context, staleness tailscale.Staleness) ([]tailscale.Service, time.Time, error) {
	f.ages = append(f.ages, staleness)
	return f.services, f.at, f.err
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return "tail1.ts.net", f.err }

type events []string

func (e *events) Event(_ runtime.Object, ev event.Event)   { *e = append(*e, ev.Message) }
func (e *events) WithAnnotations(...string) event.Recorder { return e }

func device(name string) tailscale.Device {
	return tailscale.Device{NodeID: "n" + name, Name: name + ".tail1.ts.net", ConnectedToControl: true}
}

func TestObserve(t *testing.T) {
	errBoom := errors.New("boom")
	down := &tailscale.Error{Class: tailscale.ClassUnavailable, Message: "no answer in time"}
	a := v1alpha1.Discovered{Source: "Devices", Name: "a", FQDN: "a.tail1.ts.net", NodeID: "na", Health: "Online"}
	b := v1alpha1.Discovered{Source: "Devices", Name: "b", FQDN: "b.tail1.ts.net", NodeID: "nb", Health: "Online"}
	rejected := &tailscale.Error{Class: tailscale.ClassUnauthorized, Message: "no answer in time"}
	count := int32(1)
	earlier := metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := metav1.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason   string
		api      fakeAPI
		previous v1alpha1.DiscoveryObservation
		spec     v1alpha1.DiscoveryParameters
		want     v1alpha1.DiscoveryObservation
		err      error
		ready    corev1.ConditionStatus
		events   events
		ages     []tailscale.Staleness
		poll     time.Duration
	}{
		"First": {
			reason: "Matching objects are listed, and an event counts the new ones.",
			api:    fakeAPI{devices: []tailscale.Device{device("a")}},
			want:   v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}}, ready: corev1.ConditionTrue,
			events: events{"1 appeared and 0 vanished among those listed"}, ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second), tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
		"Same": {
			reason:   "An unchanged list causes no event, and success ends a backoff.",
			api:      fakeAPI{devices: []tailscale.Device{device("a")}},
			previous: v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, Failures: 3},
			want:     v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}}, ready: corev1.ConditionTrue,
			ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second), tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
		"Changed": {
			reason:   "One event reports all changes; services are only requested if the spec wants them.",
			api:      fakeAPI{devices: []tailscale.Device{device("b")}},
			previous: v1alpha1.DiscoveryObservation{Discovered: []v1alpha1.Discovered{a}},
			spec:     v1alpha1.DiscoveryParameters{Sources: []v1alpha1.DiscoverySource{"Devices"}, Interval: &metav1.Duration{Duration: 5 * time.Second}},
			want:     v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{b}}, ready: corev1.ConditionTrue,
			events: events{"1 appeared and 1 vanished among those listed"}, ages: []tailscale.Staleness{tailscale.AtMost(4 * time.Second)}, poll: 5 * time.Second,
		},
		"LastChanged": {
			reason:   "The time of the list's last change comes from the API's clock.",
			api:      fakeAPI{devices: []tailscale.Device{device("b")}, at: later.Time},
			previous: v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, LastChanged: &earlier},
			want:     v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{b}, LastChanged: &later}, ready: corev1.ConditionTrue,
			events: events{"1 appeared and 1 vanished among those listed"}, ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second), tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
		"LastChangedStays": {
			reason:   "An unchanged list does not change the status.",
			api:      fakeAPI{devices: []tailscale.Device{device("a")}, at: later.Time},
			previous: v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, LastChanged: &earlier},
			want:     v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, LastChanged: &earlier}, ready: corev1.ConditionTrue,
			ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second), tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
		"Failing": {
			reason:   "An API that fails is reported and asked less often, and the last list is kept.",
			api:      fakeAPI{err: down},
			previous: v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, Failures: 1},
			want:     v1alpha1.DiscoveryObservation{Count: &count, Discovered: []v1alpha1.Discovered{a}, Failures: 2}, ready: corev1.ConditionFalse,
			ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second)}, poll: 2 * time.Minute,
		},
		"FailingForLong": {
			reason:   "The failure count stops at the longest backoff, so the status does not change.",
			api:      fakeAPI{err: down},
			previous: v1alpha1.DiscoveryObservation{Failures: 4},
			want:     v1alpha1.DiscoveryObservation{Failures: 4}, ready: corev1.ConditionFalse,
			ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second)}, poll: maxBackoff,
		},
		"Rejected": {
			reason: "A rejected credential is reported like any error, so that a fixed one takes effect at once.",
			api:    fakeAPI{err: rejected}, err: rejected, ready: corev1.ConditionFalse, ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
		"OwnFault": {
			reason: "An error that the tailnet did not cause is returned.",
			api:    fakeAPI{err: errBoom}, err: errBoom, ready: corev1.ConditionUnknown, ages: []tailscale.Staleness{tailscale.AtMost(24 * time.Second)}, poll: 30 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := &v1alpha1.Discovery{Spec: v1alpha1.DiscoverySpec{ForProvider: tc.spec}, Status: v1alpha1.DiscoveryStatus{AtProvider: tc.previous}}
			var recorded events
			e := &external{api: tc.api.areas(), record: &recorded}
			o, err := e.Observe(t.Context(), mg)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("%s\nObserve(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if tc.err == nil && (!o.ResourceExists || !o.ResourceUpToDate) {
				t.Errorf("%s\nObserve(...): %+v", tc.reason, o)
			}
			if diff := cmp.Diff(tc.want, mg.Status.AtProvider); diff != "" {
				t.Errorf("%s\nstatus: -want, +got:\n%s", tc.reason, diff)
			}
			c := mg.GetCondition(xpv2.TypeReady)
			if c.Status != tc.ready || (tc.ready == corev1.ConditionFalse && !strings.Contains(c.Message, "no answer in time")) {
				t.Errorf("%s\nReady: %+v", tc.reason, c)
			}
			if diff := cmp.Diff(tc.events, recorded); diff != "" {
				t.Errorf("%s\nevents: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ages, tc.api.ages); diff != "" {
				t.Errorf("%s\nages: -want, +got:\n%s", tc.reason, diff)
			}
			if got := poll(mg, time.Hour); got != tc.poll {
				t.Errorf("%s\npoll(...): want %s, got %s", tc.reason, tc.poll, got)
			}
		})
	}
}

func TestDeleted(t *testing.T) {
	at := metav1.Now()
	mg := &v1alpha1.Discovery{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &at}}
	got, err := (&external{api: (&fakeAPI{err: errors.New("boom")}).areas()}).Observe(t.Context(), mg)
	if diff := cmp.Diff(managed.ExternalObservation{}, got); diff != "" || err != nil {
		t.Errorf("Observe(...): %v, -want, +got:\n%s", err, diff)
	}
}
