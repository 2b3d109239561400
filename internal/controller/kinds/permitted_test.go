// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
)

// A refusedConnector always fails.
type refusedConnector struct{ err error }

func (c refusedConnector) Connect(context.Context, *v1alpha1.Webhook) (managed.TypedExternalClient[*v1alpha1.Webhook], error) {
	return nil, c.err
}

// said holds the events that were recorded.
type said struct{ events []event.Event }

func (s *said) Event(_ runtime.Object, e event.Event)    { s.events = append(s.events, e) }
func (s *said) WithAnnotations(...string) event.Recorder { return s }

func TestNeverAllowed(t *testing.T) {
	neverAllowed := errors.Wrap(&clients.NeverAllowedError{Message: "no leave"}, "cannot connect")
	other := errors.New("boom")
	cases := map[string]struct {
		reason    string
		err       error
		remaining string
		events    int
		want      error
	}{
		"Named":   {reason: "Objects that the object claims to have made stay, and the event names them.", err: neverAllowed, remaining: "endpoint-1", events: 1},
		"Nothing": {reason: "An object that claims nothing causes no event.", err: neverAllowed},
		"Other":   {reason: "Another connection error is retried.", err: other, remaining: "endpoint-1", want: other},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record := &said{}
			c := &permitted[*v1alpha1.Webhook]{
				TypedExternalConnector: refusedConnector{err: tc.err}, record: record, remaining: xpmetaName, permits: permits.New(fake.NewClientBuilder().Build(), "system"),
			}
			at := metav1.Now()
			mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{UID: "uid", DeletionTimestamp: &at}}
			xpmeta.SetExternalName(mg, tc.remaining)
			e, err := c.Connect(t.Context(), mg)
			if !errors.Is(err, tc.want) {
				t.Fatalf("\n%s\nConnect(...): want %v, got %v", tc.reason, tc.want, err)
			}
			if tc.want != nil {
				return
			}
			if o, err := e.Observe(t.Context(), mg); err != nil || o.ResourceExists {
				t.Errorf("\n%s\nObserve(...): want nothing to delete, got %v, %v", tc.reason, o, err)
			}
			if len(record.events) != tc.events {
				t.Fatalf("\n%s\nwant %d events, got %v", tc.reason, tc.events, record.events)
			}
			for _, e := range record.events {
				if e.Type != event.TypeWarning || !strings.Contains(e.Message, tc.remaining) {
					t.Errorf("\n%s\nwant a warning that names %s, got %v", tc.reason, tc.remaining, e)
				}
			}
		})
	}
}

func xpmetaName(mg *v1alpha1.Webhook) string { return xpmeta.GetExternalName(mg) }

func TestPermitIsForgotten(t *testing.T) {
	r := permits.New(fake.NewClientBuilder().Build(), "system")
	if err := r.Add(t.Context(), "uid", permits.Permit{Kind: "Webhook", Namespace: "apps", Config: "home"}); err != nil {
		t.Fatal(err)
	}
	tailnet := &scripted{}
	c := &permitted[*v1alpha1.Webhook]{TypedExternalConnector: &connected{tailnet}, permits: r}
	mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	at := metav1.Now()
	steps := []struct {
		reason  string
		deleted *metav1.Time
		exists  bool
		want    bool
	}{
		{reason: "The permit of an object that is not made yet stays.", want: true},
		{reason: "The permit of an object that is being deleted stays.", deleted: &at, exists: true, want: true},
		{reason: "Once nothing is left, the permit is removed.", deleted: &at},
	}
	for _, st := range steps {
		mg.DeletionTimestamp, tailnet.observation.ResourceExists = st.deleted, st.exists
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Has(t.Context(), "uid", "home"); err != nil || got != st.want {
			t.Errorf("\n%s\nHas(...): want %t, got %t, %v", st.reason, st.want, got, err)
		}
	}
}

// TestBeyondGrant shows that an object which may not delete what it names is deleted without
// clean-up.
func TestBeyondGrant(t *testing.T) {
	beyond := errors.Wrap(&allow.ViolationError{Field: "tags of device n1", Problem: "too much"}, "cannot delete device")
	tailnet := &scripted{deletion: beyond}
	tailnet.observation.ResourceExists = true
	record := &said{}
	c := &permitted[*v1alpha1.Webhook]{TypedExternalConnector: &connected{tailnet}, record: record, remaining: xpmetaName, permits: permits.New(fake.NewClientBuilder().Build(), "system")}
	at := metav1.Now()
	mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{UID: "uid", DeletionTimestamp: &at}}
	xpmeta.SetExternalName(mg, "endpoint-1")
	for i, exists := range []bool{true, false} {
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		o, err := e.Observe(t.Context(), mg)
		if err != nil || o.ResourceExists != exists {
			t.Fatalf("Observe(...) %d: want something to delete: %t, got %v, %v", i, exists, o, err)
		}
		if !exists {
			break
		}
		for range 2 {
			if _, err := e.Delete(t.Context(), mg); err != nil {
				t.Fatalf("Delete(...): %v", err)
			}
		}
	}
	if len(record.events) != 1 || !strings.Contains(record.events[0].Message, "too much") || !strings.Contains(record.events[0].Message, "endpoint-1") {
		t.Errorf("want one event that says what is left and why, got %v", record.events)
	}
	boom := errors.New("boom")
	tailnet.deletion = boom
	mg.SetUID("other")
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Delete(t.Context(), mg); !errors.Is(err, boom) {
		t.Errorf("Delete(...): want %v, got %v", boom, err)
	}
}
