// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contacts

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

// A fakeAPI holds a tailnet's contacts in memory.
type fakeAPI struct {
	all        tailscale.Contacts
	err, write error
	writes     []string
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return "tail1.ts.net", f.err }

func (f *fakeAPI) Contacts(context.Context, tailscale.Staleness) (tailscale.Contacts, error) {
	return f.all, f.err
}

func (f *fakeAPI) SetContact(_ context.Context, contact, email string) error {
	if f.write != nil {
		return f.write
	}
	f.writes = append(f.writes, contact)
	c := map[string]*tailscale.Contact{account: &f.all.Account, support: &f.all.Support, security: &f.all.Security}[contact]
	*c = tailscale.Contact{Email: email, FallbackEmail: c.Email, NeedsVerification: true}
	return nil
}

func object(name string, age time.Duration, change ...func(*v1alpha1.Contacts)) *v1alpha1.Contacts {
	mg := &v1alpha1.Contacts{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(-age)),
	}}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	xpmeta.SetExternalCreateSucceeded(mg, mg.GetCreationTimestamp().Time)
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"})
	for _, f := range change {
		f(mg)
	}
	return mg
}

func email(e string) *v1alpha1.ContactEmail {
	out := v1alpha1.ContactEmail(e)
	return &out
}

func wantsSupport(e string) func(*v1alpha1.Contacts) {
	return func(mg *v1alpha1.Contacts) { mg.Spec.ForProvider.Support = email(e) }
}

func wantsSecurity(e string) func(*v1alpha1.Contacts) {
	return func(mg *v1alpha1.Contacts) { mg.Spec.ForProvider.Security = email(e) }
}

func observeOnly(mg *v1alpha1.Contacts) {
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
}

func unmade(mg *v1alpha1.Contacts) {
	xpmeta.RemoveAnnotations(mg, xpmeta.AnnotationKeyExternalCreateSucceeded)
}

func TestReconcile(t *testing.T) {
	const old, updated = "old@example.com", "new@example.com"
	start := tailscale.Contacts{Account: tailscale.Contact{Email: old}, Support: tailscale.Contact{Email: old}, Security: tailscale.Contact{Email: old}}
	fine := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	cases := map[string]struct {
		reason  string
		api     fakeAPI
		mg      *v1alpha1.Contacts
		others  []*v1alpha1.Contacts
		want    managed.ExternalObservation
		err     error
		blocked bool
		writes  []string
		ready   xpv2.ConditionReason
		message string
	}{
		"Different": {
			reason: "A contact that differs is changed, and must be verified.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport(updated)),
			want: managed.ExternalObservation{ResourceExists: true}, writes: []string{support},
			ready: xpv2.ReasonAvailable, message: "Somebody must follow the link in the email that Tailscale sent to the address of: support",
		},
		"First": {
			reason: "A new object is created, so that an object without the Update policy is written once.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport(updated), unmade),
			writes: []string{support}, ready: "",
		},
		"Same": {
			reason: "Case is ignored, because each change sends an email.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport("Old@Example.com")),
			want: fine, ready: xpv2.ReasonAvailable,
		},
		"ObserveOnly": {
			reason: "An object that may only observe changes nothing.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport(updated), observeOnly),
			want: fine, ready: xpv2.ReasonAvailable,
		},
		"OlderHasIt": {
			reason: "A contact of an older object is not changed; the others are.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport(updated), wantsSecurity(updated)),
			others: []*v1alpha1.Contacts{object("old", time.Hour, wantsSupport(old))},
			want:   managed.ExternalObservation{ResourceExists: true}, writes: []string{security}, blocked: true,
			ready: meta.ReasonConflict, message: "Managed already: support by Contacts default/old; remove it from one of the objects",
		},
		"OlderObserves": {
			reason: "An older object that only observes has no contacts.",
			api:    fakeAPI{all: start}, mg: object("a", 0, wantsSupport(updated)),
			others: []*v1alpha1.Contacts{object("old", time.Hour, wantsSupport(old), observeOnly)},
			want:   managed.ExternalObservation{ResourceExists: true}, writes: []string{support}, ready: xpv2.ReasonAvailable,
			message: "Somebody must follow the link in the email that Tailscale sent to the address of: support",
		},
		"ErrGet":   {reason: "An error of the API is returned.", api: fakeAPI{err: errBoom}, mg: object("a", 0, wantsSupport(updated)), err: errBoom},
		"ErrWrite": {reason: "An error of a write is returned.", api: fakeAPI{all: start, write: errBoom}, mg: object("a", 0, wantsSupport(updated)), want: managed.ExternalObservation{ResourceExists: true}, err: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			b := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.mg.DeepCopy())
			for _, o := range tc.others {
				b.WithObjects(o)
			}
			e := &external{api: &tc.api, kube: b.Build()}
			got, err := e.Observe(t.Context(), tc.mg)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want, +got:\n%s", tc.reason, diff)
			}
			switch {
			case err != nil:
			case !got.ResourceExists:
				_, err = e.Create(t.Context(), tc.mg)
			case !got.ResourceUpToDate:
				_, err = e.Update(t.Context(), tc.mg)
			}
			if tc.blocked {
				if err == nil || err.Error() != tc.message {
					t.Errorf("\n%s\nwant error %q, got %v", tc.reason, tc.message, err)
				}
				// Further observations give the same result, without another write.
				if _, err := e.Observe(t.Context(), tc.mg); err == nil {
					t.Errorf("\n%s\nObserve(...): want an error", tc.reason)
				}
			} else if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, tc.api.writes); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			ready := tc.mg.GetCondition(xpv2.TypeReady)
			if ready.Reason != tc.ready || ready.Message != tc.message {
				t.Errorf("\n%s\nReady: want %q %q, got %q %q", tc.reason, tc.ready, tc.message, ready.Reason, ready.Message)
			}
		})
	}
}
