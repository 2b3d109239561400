// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func wanting(name string, age time.Duration, s *v1alpha1.TailnetSettings, policies ...xpv2.ManagementAction) *v1alpha1.Tailnet {
	mg := &v1alpha1.Tailnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(-age)),
		},
		Spec: v1alpha1.TailnetSpec{ForProvider: v1alpha1.TailnetParameters{Settings: s}},
	}
	mg.SetManagementPolicies(policies)
	if len(policies) == 0 {
		mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"})
	return mg
}

func TestSettings(t *testing.T) {
	errBoom := errors.New("boom")
	forbidden := &tailscale.Error{Class: tailscale.ClassForbidden, Scope: "networking_settings"}
	enabled, disabled, days := true, false, int32(90)
	https := &v1alpha1.TailnetSettings{HTTPSEnabled: &enabled}
	both := &v1alpha1.TailnetSettings{HTTPSEnabled: &enabled, DevicesKeyDurationDays: &days}
	off := tailscale.Settings{HTTPSEnabled: &disabled, DevicesKeyDurationDays: &days}
	active := tailscale.Settings{HTTPSEnabled: &enabled, DevicesKeyDurationDays: &days}
	cases := map[string]struct {
		reason  string
		api     *fakeAPI
		mg      *v1alpha1.Tailnet
		others  []v1alpha1.Tailnet
		err     string
		patches []tailscale.Settings
		ready   xpv2.ConditionReason
		status  *v1alpha1.TailnetSettings
	}{
		"NotWanted": {
			reason: "Settings are shown, and not changed.",
			api:    &fakeAPI{settings: off}, mg: wanting("a", 0, nil),
			ready: xpv2.ReasonAvailable, status: &v1alpha1.TailnetSettings{HTTPSEnabled: &disabled, DevicesKeyDurationDays: &days},
		},
		"Drift": {
			reason: "Only what differs is written.",
			api:    &fakeAPI{settings: off}, mg: wanting("a", 0, both),
			patches: []tailscale.Settings{{HTTPSEnabled: &enabled}}, ready: xpv2.ReasonAvailable, status: both,
		},
		"UpToDate": {
			reason: "Settings that match the spec are not written.",
			api:    &fakeAPI{settings: active}, mg: wanting("a", 0, both),
			ready: xpv2.ReasonAvailable, status: both,
		},
		"ObserveOnly": {
			reason: "An object that may only observe writes nothing.",
			api:    &fakeAPI{settings: off}, mg: wanting("a", 0, https, xpv2.ManagementActionObserve),
			ready: xpv2.ReasonAvailable, status: &v1alpha1.TailnetSettings{HTTPSEnabled: &disabled, DevicesKeyDurationDays: &days},
		},
		"NotReadable": {
			reason: "Settings that may not be read are absent, which is no error if none is wanted.",
			api:    &fakeAPI{settingsErr: forbidden}, mg: wanting("a", 0, nil),
			ready: xpv2.ReasonAvailable,
		},
		"WantedNotReadable": {
			reason: "If one is wanted, the message names the missing scope.",
			api:    &fakeAPI{settings: tailscale.Settings{DevicesKeyDurationDays: &days}}, mg: wanting("a", 0, https),
			err: "networking_settings", ready: meta.ReasonScopeMissing, status: &v1alpha1.TailnetSettings{DevicesKeyDurationDays: &days},
		},
		"NotWritable": {
			reason: "For a setting that may not be written, the message names the scope too.",
			api:    &fakeAPI{settings: off, patchErr: forbidden}, mg: wanting("a", 0, https),
			err: "networking_settings", ready: xpv2.ReasonUnavailable, status: &v1alpha1.TailnetSettings{HTTPSEnabled: &disabled, DevicesKeyDurationDays: &days},
		},
		"OlderHasIt": {
			reason: "A setting that an older object names belongs to that object.",
			api:    &fakeAPI{settings: off}, mg: wanting("a", 0, https),
			others: []v1alpha1.Tailnet{*wanting("old", time.Hour, &v1alpha1.TailnetSettings{HTTPSEnabled: &disabled})},
			err:    "httpsEnabled by Tailnet default/old", ready: meta.ReasonConflict, status: &v1alpha1.TailnetSettings{HTTPSEnabled: &disabled, DevicesKeyDurationDays: &days},
		},
		"ErrGetWanted": {
			reason: "Settings that are wanted and cannot be read are an error.",
			api:    &fakeAPI{settingsErr: errBoom}, mg: wanting("a", 0, https), err: "boom",
		},
		"ErrGetNotWanted": {
			reason: "Otherwise, the status is shown without them.",
			api:    &fakeAPI{settingsErr: errBoom}, mg: wanting("a", 0, nil), ready: xpv2.ReasonAvailable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &external{api: tc.api.areas(), list: func(context.Context) ([]v1alpha1.Tailnet, error) { return tc.others, nil }}
			var err error
			for range 3 {
				o, oerr := e.Observe(t.Context(), tc.mg)
				switch err = oerr; {
				case err != nil:
				case !o.ResourceExists:
					if _, err = e.Create(t.Context(), tc.mg); err == nil {
						xpmeta.SetExternalCreateSucceeded(tc.mg, time.Now())
					}
				case !o.ResourceUpToDate:
					_, err = e.Update(t.Context(), tc.mg)
				}
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("\n%s\nwant error %q, got: %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.patches, tc.api.patches, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nPatchSettings(...): -want, +got:\n%s", tc.reason, diff)
			}
			ready := tc.mg.GetCondition(xpv2.TypeReady)
			if ready.Reason != tc.ready {
				t.Errorf("\n%s\nReady: want %q, got %q", tc.reason, tc.ready, ready.Reason)
			}
			if tc.ready != xpv2.ReasonAvailable && !strings.Contains(ready.Message, tc.err) && tc.ready != "" {
				t.Errorf("\n%s\nReady: want a message with %q, got %q", tc.reason, tc.err, ready.Message)
			}
			if diff := cmp.Diff(tc.status, tc.mg.Status.AtProvider.Settings); diff != "" {
				t.Errorf("\n%s\nstatus: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.mg.GetCondition(meta.TypeAuthenticated).Reason != meta.ReasonCredentialAccepted {
				t.Errorf("\n%s\nAuthenticated must not depend on settings", tc.reason)
			}
		})
	}
}
