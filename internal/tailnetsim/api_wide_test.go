// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestSettingsScopes(t *testing.T) {
	enabled, days := true, 90
	cases := map[string]struct {
		reason string
		scopes []string
		read   int
		patch  tailscale.UpdateTailnetSettingsRequest
		want   int
	}{
		"None":     {reason: "Without any of the scopes nothing may be read.", scopes: []string{"dns"}, read: http.StatusForbidden, want: http.StatusForbidden, patch: tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}},
		"Its":      {reason: "A setting may be written with its scope.", scopes: []string{"networking_settings"}, patch: tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}},
		"Another":  {reason: "Another scope is not enough.", scopes: []string{"feature_settings"}, patch: tailscale.UpdateTailnetSettingsRequest{HTTPSEnabled: &enabled}, want: http.StatusForbidden},
		"ReadOnly": {reason: "The scope to read does not permit writing.", scopes: []string{"feature_settings:read"}, patch: tailscale.UpdateTailnetSettingsRequest{DevicesKeyDurationDays: &days}, want: http.StatusForbidden},
		"TooLong":  {reason: "Values are bounded.", scopes: []string{"all"}, patch: tailscale.UpdateTailnetSettingsRequest{DevicesKeyDurationDays: tailscale.PointerTo(181)}, want: http.StatusBadRequest},
		"Role":     {reason: "Roles are an enumeration.", scopes: []string{"all"}, patch: tailscale.UpdateTailnetSettingsRequest{UsersRoleAllowedToJoinExternalTailnets: tailscale.PointerTo(tailscale.RoleAllowedToJoinExternalTailnets("owner"))}, want: http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Clients[0].Scopes = tc.scopes })
			s := r.Client(t).TailnetSettings()
			_, err := s.Get(t.Context())
			if code, msg := status(t, err); code != tc.read {
				t.Errorf("\n%s\nGet(...): want %d, got %d: %s", tc.reason, tc.read, code, msg)
			}
			if code, msg := status(t, s.Update(t.Context(), tc.patch)); code != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %d, got %d: %s", tc.reason, tc.want, code, msg)
			}
		})
	}
}

func TestContacts(t *testing.T) {
	c, ctx := simtest.StartAPI(t).Client(t).Contacts(), t.Context()
	original := must[*tailscale.Contacts](t)(c.Get(ctx))
	for _, email := range []string{"a@example.com", "b@example.com", "b@example.com"} {
		mustDo(t, c.Update(ctx, tailscale.ContactSupport, tailscale.UpdateContactRequest{Email: &email}))
	}
	want := *original
	want.Support = tailscale.Contact{Email: "b@example.com", FallbackEmail: original.Support.Email, NeedsVerification: true}
	if diff := cmp.Diff(&want, must[*tailscale.Contacts](t)(c.Get(ctx))); diff != "" {
		t.Errorf("contacts: -want, +got:\n%s", diff)
	}
	for contact, want := range map[tailscale.ContactType]int{"nobody": http.StatusNotFound, tailscale.ContactAccount: http.StatusBadRequest} {
		code, _ := status(t, c.Update(ctx, contact, tailscale.UpdateContactRequest{Email: tailscale.PointerTo("nonsense")}))
		if code != want {
			t.Errorf("%s: want %d, got %d", contact, want, code)
		}
	}
}

func TestNameservers(t *testing.T) {
	d, ctx := simtest.StartAPI(t).Client(t).DNS(), t.Context()
	if code, _ := status(t, d.SetNameservers(ctx, []string{"dns.example"})); code != http.StatusBadRequest {
		t.Errorf("a name instead of an address: %d", code)
	}
	conf := tailscale.DNSConfiguration{
		Nameservers: []tailscale.DNSConfigurationResolver{{Address: "1.1.1.1", UseWithExitNode: true}, {Address: "8.8.8.8"}},
		SplitDNS:    map[string][]tailscale.DNSConfigurationResolver{},
		Preferences: tailscale.DNSConfigurationPreferences{MagicDNS: true, OverrideLocalDNS: true},
	}
	mustDo(t, d.SetConfiguration(ctx, conf))
	got := must[*tailscale.DNSConfiguration](t)(d.Configuration(ctx))
	got.SplitDNS = conf.SplitDNS
	if diff := cmp.Diff(&conf, got); diff != "" {
		t.Errorf("configuration: -want, +got:\n%s", diff)
	}
	mustDo(t, d.SetNameservers(ctx, nil))
	if must[*tailscale.DNSPreferences](t)(d.Preferences(ctx)).MagicDNS {
		t.Error("MagicDNS stays on without nameservers")
	}
}

func TestOrganization(t *testing.T) {
	r := simtest.StartAPI(t)
	u := must[*url.URL](t)(url.Parse(r.URL))
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, u.JoinPath("/api/v2/organizations/-/tailnets").String(), nil))
	req.SetBasicAuth(simtest.APIKey, "")
	var out struct {
		Tailnets []struct{ ID, DisplayName, OrgID, DNSName string } `json:"tailnets"`
	}
	decode(t, req, http.StatusOK, &out)
	if len(out.Tailnets) != 1 || out.Tailnets[0].OrgID == "" || out.Tailnets[0].DNSName != "tail1234.ts.net" {
		t.Errorf("tailnets: %+v", out.Tailnets)
	}
}
