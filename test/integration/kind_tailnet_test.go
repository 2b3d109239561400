// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"k8s.io/utils/ptr"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(tailnetCase()) }

func tailnetCase() kindCase[*v1alpha1.Tailnet] {
	set := func(e *env, days int) {
		e.must(e.tailnet.TailnetSettings().Update(e.Context(), tsclient.UpdateTailnetSettingsRequest{DevicesKeyDurationDays: &days}))
	}
	const always = "a tailnet exists before and after"
	return kindCase[*v1alpha1.Tailnet]{
		Kind: v1alpha1.TailnetKind,
		New: func(*env) *v1alpha1.Tailnet {
			return &v1alpha1.Tailnet{Spec: v1alpha1.TailnetSpec{ForProvider: v1alpha1.TailnetParameters{
				Settings: &v1alpha1.TailnetSettings{DevicesKeyDurationDays: ptr.To[int32](30)},
			}}}
		},
		Check: func(e *env, mg *v1alpha1.Tailnet) error {
			s, err := e.tailnet.TailnetSettings().Get(e.Context())
			if err != nil {
				return err
			}
			want := mg.Spec.ForProvider.Settings
			type seen struct {
				Days     int
				Approval bool
				Routing  string
			}
			return lifecycle.Differ(
				seen{Days: int(*want.DevicesKeyDurationDays), Approval: ptr.Deref(want.DevicesApprovalOn, false), Routing: ptr.Deref(want.RouteSelection, string(tailnetsim.ActivePassiveFailover))},
				seen{Days: s.DevicesKeyDurationDays, Approval: s.DevicesApprovalOn, Routing: string(s.RouteSelection)})
		},
		Drift: func(e *env, _ *v1alpha1.Tailnet) { set(e, 90) },
		Update: func(_ *env, mg *v1alpha1.Tailnet) {
			mg.Spec.ForProvider.Settings.DevicesKeyDurationDays = ptr.To[int32](60)
			mg.Spec.ForProvider.Settings.DevicesApprovalOn = ptr.To(true)
			mg.Spec.ForProvider.Settings.RouteSelection = ptr.To("magicroute")
		},
		Optional: map[string]string{
			"GET /api/v2/tailnet/{tailnet}/dns/preferences":     "whether MagicDNS is on is left out of the status then",
			"GET /api/v2/organizations/{organization}/tailnets": "ids are left out of the status then",
		},
		Skip: map[step]string{
			stepDelete:      "settings have no previous value",
			stepRefuse:      always + ", and has no owner",
			stepAdopt:       always,
			stepObserveNone: always,
		},
		Bad: []badInput[*v1alpha1.Tailnet]{
			{Name: "KeysForNoDay", Break: func(mg *v1alpha1.Tailnet) { mg.Spec.ForProvider.Settings.DevicesKeyDurationDays = ptr.To[int32](0) }, Want: []string{"spec.forProvider.settings", "between 1 and 180"}},
			{Name: "KeysForTooLong", Break: func(mg *v1alpha1.Tailnet) { mg.Spec.ForProvider.Settings.DevicesKeyDurationDays = ptr.To[int32](181) }, Want: []string{"spec.forProvider.settings", "between 1 and 180"}},
			{Name: "UnknownRole", Break: func(mg *v1alpha1.Tailnet) {
				mg.Spec.ForProvider.Settings.UsersRoleAllowedToJoinExternalTailnets = ptr.To("owner")
			}, Want: []string{"spec.forProvider.settings", "none, admin or member"}},
			{Name: "UnknownRouteSelection", Break: func(mg *v1alpha1.Tailnet) { mg.Spec.ForProvider.Settings.RouteSelection = ptr.To("nearest") }, Want: []string{"spec.forProvider.settings", "regional-routing-failover or magicroute"}},
			{Name: "TwoRouteSelections", Break: func(mg *v1alpha1.Tailnet) {
				mg.Spec.ForProvider.Settings.RegionalRoutingOn, mg.Spec.ForProvider.Settings.RouteSelection = ptr.To(true), ptr.To("magicroute")
			}, Want: []string{"spec.forProvider.settings", "exclude each other"}},
			{Name: "LinkIsNoURL", Break: func(mg *v1alpha1.Tailnet) { mg.Spec.ForProvider.Settings.ACLsExternalLink = ptr.To("our wiki") }, Want: []string{"spec.forProvider.settings", "must be a URL"}},
		},
	}
}
