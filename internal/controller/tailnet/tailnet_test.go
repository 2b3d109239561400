// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

type fakeAPI struct {
	domain string
	list   error
	dns    error

	organization tailscale.Organization
	orgErr       error

	credential    tailscale.CredentialInfo
	credentialErr error

	settings    tailscale.Settings
	settingsErr error
	patchErr    error
	patches     []tailscale.Settings
}

// A fakeDevices has the calls of devices, and a fakeServices those of services.
type (
	fakeDevices  struct{ *fakeAPI }
	fakeServices struct{ *fakeAPI }
)

// areas returns the tailnet's API.
func (f *fakeAPI) areas() *api {
	return &api{devices: fakeDevices{f}, services: fakeServices{f}, dns: f, tailnet: f}
}

func (f *fakeAPI) Organization(context.Context, string) (tailscale.Organization, error) {
	return f.organization, f.orgErr
}

func (f *fakeAPI) Credential(context.Context) (tailscale.CredentialInfo, error) {
	return f.credential, f.credentialErr
}

func (f *fakeAPI) Settings(context.Context, tailscale.Staleness) (tailscale.Settings, error) {
	return f.settings, f.settingsErr
}

func (f *fakeAPI) PatchSettings(_ context.Context, s tailscale.Settings) error {
	if f.patchErr != nil {
		return f.patchErr
	}
	f.patches = append(f.patches, s)
	f.settings.HTTPSEnabled = s.HTTPSEnabled
	return nil
}

func (f fakeDevices) Devices(context.Context, tailscale.Staleness) ([]tailscale.Device, error) {
	return []tailscale.Device{{}, {ConnectedToControl: true}}, f.list
}

func (f fakeServices) Services(context.Context, tailscale.Staleness) ([]tailscale.Service, error) {
	return make([]tailscale.Service, 1), f.list
}

func (f *fakeAPI) Domain(context.Context) (string, error) { return f.domain, f.list }

func (f *fakeAPI) MagicDNS(context.Context, tailscale.Staleness) (bool, error) { return true, f.dns }

func TestObserve(t *testing.T) {
	errBoom := errors.New("boom")
	enabled, two, single := true, int64(2), int64(1)
	owned := v1alpha1.TailnetObservation{Name: "tail1.ts.net", MagicDNSSuffix: "tail1.ts.net", MagicDNS: &enabled, DeviceCount: &two, ConnectedDevices: &single, ServiceCount: &single, ID: "T1", Organization: "Example", OrganizationID: "o1"}
	seen := v1alpha1.TailnetObservation{Name: "tail1.ts.net", MagicDNSSuffix: "tail1.ts.net", MagicDNS: &enabled, DeviceCount: &two, ConnectedDevices: &single, ServiceCount: &single}
	noDNS := seen
	noDNS.MagicDNS = nil
	noName := seen
	noName.Name, noName.MagicDNSSuffix = "", ""
	limited := seen
	limited.Credential = &v1alpha1.CredentialObservation{Scopes: []string{"devices:core", "services"}}
	ending := seen
	ending.Credential = &v1alpha1.CredentialObservation{ExpiresAt: &metav1.Time{Time: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}}
	fine := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	cases := map[string]struct {
		reason  string
		api     *fakeAPI
		connect error
		want    managed.ExternalObservation
		err     error
		auth    xpv2.ConditionReason
		ready   corev1.ConditionStatus
		status  v1alpha1.TailnetObservation
		poll    time.Duration
	}{
		"Accepted": {
			reason: "A tailnet that answers is ready and polled at the normal interval.",
			api:    &fakeAPI{domain: "tail1.ts.net"},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: seen, poll: time.Minute,
		},
		"Organization": {
			reason: "With a sufficient credential, the status shows the tailnet's owner.",
			api:    &fakeAPI{domain: "tail1.ts.net", organization: tailscale.Organization{ID: "o1", TailnetID: "T1", TailnetName: "Example"}},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: owned, poll: time.Minute,
		},
		"OrganizationUnknown": {
			reason: "A failed read of the owner has no effect.",
			api:    &fakeAPI{domain: "tail1.ts.net", orgErr: errBoom},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: seen, poll: time.Minute,
		},
		"Scopes": {
			reason: "The status shows the credential's scopes.",
			api:    &fakeAPI{domain: "tail1.ts.net", credential: tailscale.CredentialInfo{Scopes: []string{"devices:core", "services"}}},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: limited, poll: time.Minute,
		},
		"Expires": {
			reason: "The status shows when the credential expires.",
			api:    &fakeAPI{domain: "tail1.ts.net", credential: tailscale.CredentialInfo{Expires: time.Date(2026, 3, 1, 0, 0, 0, 5, time.UTC)}},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: ending, poll: time.Minute,
		},
		"CredentialUnknown": {
			reason: "A failed read of the credential has no effect.",
			api:    &fakeAPI{domain: "tail1.ts.net", credentialErr: errBoom},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: seen, poll: time.Minute,
		},
		"NoDomainYet": {
			reason: "A tailnet without a device is polled again soon.",
			api:    &fakeAPI{},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: noName, poll: pollUnsettled,
		},
		"NoDNSScope": {
			reason: "Reading DNS settings is not needed.",
			api:    &fakeAPI{domain: "tail1.ts.net", dns: &tailscale.Error{Class: tailscale.ClassForbidden}},
			want:   fine, auth: meta.ReasonCredentialAccepted, ready: corev1.ConditionTrue, status: noDNS, poll: time.Minute,
		},
		"SecretNotFound": {
			reason:  "A missing Secret is reported, and polled often.",
			connect: &clients.CredentialsError{Reason: meta.ReasonSecretNotFound},
			want:    fine, auth: meta.ReasonSecretNotFound, ready: corev1.ConditionFalse, poll: pollNoSecret,
		},
		"Rejected": {
			reason: "A rejected credential is shown.",
			api:    &fakeAPI{list: &tailscale.Error{Class: tailscale.ClassUnauthorized}},
			want:   fine, auth: meta.ReasonCredentialRejected, ready: corev1.ConditionFalse, poll: pollUnsettled,
		},
		"TailnetNotFound": {
			reason: "An unknown tailnet is shown.",
			api:    &fakeAPI{list: &tailscale.Error{Class: tailscale.ClassTailnetNotFound}},
			want:   fine, auth: meta.ReasonTailnetNotFound, ready: corev1.ConditionFalse, poll: pollUnsettled,
		},
		"ScopeMissing": {
			reason: "A missing scope is shown.",
			api:    &fakeAPI{list: &tailscale.Error{Class: tailscale.ClassForbidden, Scope: "services"}},
			want:   fine, auth: meta.ReasonScopeMissing, ready: corev1.ConditionFalse, poll: pollUnsettled,
		},
		"Unavailable": {
			reason: "An API that is down is shown.",
			api:    &fakeAPI{list: &tailscale.Error{Class: tailscale.ClassUnavailable}},
			want:   fine, auth: meta.ReasonAPIUnavailable, ready: corev1.ConditionFalse, poll: pollUnsettled,
		},
		"ErrBoom": {
			reason: "An error that is not about the credential is returned.",
			api:    &fakeAPI{list: errBoom},
			err:    errBoom, poll: pollUnsettled,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := &v1alpha1.Tailnet{}
			c := &connector{connect: func(context.Context, resource.ModernManaged) (*api, error) { return tc.api.areas(), tc.connect }}
			e, err := c.Connect(t.Context(), mg)
			if err != nil {
				t.Fatalf("\n%s\nConnect(...): %v", tc.reason, err)
			}
			got, err := e.Observe(t.Context(), mg)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.auth, mg.GetCondition(meta.TypeAuthenticated).Reason); diff != "" {
				t.Errorf("\n%s\nAuthenticated: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.ready != "" && mg.GetCondition(xpv2.TypeReady).Status != tc.ready {
				t.Errorf("\n%s\nReady: want %s, got %v", tc.reason, tc.ready, mg.GetCondition(xpv2.TypeReady))
			}
			if diff := cmp.Diff(tc.status, mg.Status.AtProvider); tc.err == nil && diff != "" {
				t.Errorf("\n%s\nstatus: -want, +got:\n%s", tc.reason, diff)
			}
			if got := poll(mg, time.Minute); got != tc.poll {
				t.Errorf("\n%s\npoll(...): want %s, got %s", tc.reason, tc.poll, got)
			}
		})
	}
}

func TestDeletedIsGone(t *testing.T) {
	at := metav1.Now()
	mg := &v1alpha1.Tailnet{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &at}}
	c := &connector{connect: func(context.Context, resource.ModernManaged) (*api, error) { return nil, errors.New("boom") }}
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): want the deletion of a Tailnet to need no config: %v", err)
	}
	if o, err := e.Observe(t.Context(), mg); err != nil || o.ResourceExists {
		t.Errorf("Observe(...): want nothing, got %v, %v", o, err)
	}
}
