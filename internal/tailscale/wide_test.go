// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// as returns an option for a simulator whose credential has only the scopes.
func as(scopes ...string) simtest.Option {
	return func(o *tailnetsim.Options) { o.Clients[0].Scopes = scopes }
}

func pointer[T any](v T) *T { return &v }

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		reason  string
		scopes  []string
		wanted  Settings
		hidden  []string
		refused string
		want    Settings
	}{
		"All": {
			reason: "A credential with all scopes changes only the named settings.",
			scopes: []string{"all"},
			wanted: Settings{HTTPSEnabled: pointer(true), DevicesKeyDurationDays: pointer(int32(90)), DevicesApprovalOn: pointer(false)},
			want:   Settings{HTTPSEnabled: pointer(true), DevicesKeyDurationDays: pointer(int32(90)), DevicesApprovalOn: pointer(false), RegionalRoutingOn: pointer(false)},
		},
		"Hidden": {
			reason: "A setting without read access is nil, not false, and its scope is returned.",
			scopes: []string{"feature_settings"},
			wanted: Settings{HTTPSEnabled: pointer(true), RegionalRoutingOn: pointer(true)},
			hidden: []string{"networking_settings"},
			want:   Settings{RegionalRoutingOn: pointer(true), DevicesKeyDurationDays: pointer(int32(180)), DevicesApprovalOn: pointer(false)},
		},
		"ReadOnly": {
			reason: "A missing scope does not prevent changes of other settings.",
			scopes: []string{"feature_settings", "networking_settings:read"},
			wanted: Settings{HTTPSEnabled: pointer(true), RegionalRoutingOn: pointer(true)}, refused: "networking_settings",
			want: Settings{HTTPSEnabled: pointer(false), RegionalRoutingOn: pointer(true), DevicesKeyDurationDays: pointer(int32(180)), DevicesApprovalOn: pointer(false)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, simtest.StartAPI(t, as(tc.scopes...)), nil)
			ctx := t.Context()
			current, err := c.Tailnet().Settings(ctx, Cached)
			if err != nil {
				t.Fatalf("\n%s\nSettings(...): %v", tc.reason, err)
			}
			change, hidden, err := Change(tc.wanted, current)
			if err != nil {
				t.Fatalf("\n%s\nChange(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.hidden, hidden); diff != "" {
				t.Errorf("\n%s\nChange(...): -want hidden, +got hidden:\n%s", tc.reason, diff)
			}
			err = c.Tailnet().PatchSettings(ctx, change)
			if tc.refused == "" && err != nil || tc.refused != "" && ClassOf(err) != ClassForbidden {
				t.Errorf("\n%s\nPatchSettings(...): %v", tc.reason, err)
			}
			var e *Error
			if errors.As(err, &e) && e.Scope != tc.refused {
				t.Errorf("\n%s\nPatchSettings(...): want scope %q, got %q", tc.reason, tc.refused, e.Scope)
			}
			got, err := c.Tailnet().Settings(ctx, Cached)
			if err != nil {
				t.Fatalf("\n%s\nSettings(...): %v", tc.reason, err)
			}
			// Settings that no case changes.
			got.DevicesAutoUpdatesOn, got.UsersApprovalOn, got.UsersRoleAllowedToJoinExternalTailnets = nil, nil, nil
			got.NetworkFlowLoggingOn, got.PostureIdentityCollectionOn, got.ACLsExternallyManagedOn, got.ACLsExternalLink, got.RouteSelection = nil, nil, nil, nil, nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSettings(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRouteSelection verifies that the two names of one setting are one for claims and for removal.
func TestRouteSelection(t *testing.T) {
	for _, s := range []Settings{{RegionalRoutingOn: pointer(true)}, {RouteSelection: pointer("magicroute")}} {
		names, err := s.Names()
		if diff := cmp.Diff([]string{"routeSelection"}, names); err != nil || diff != "" {
			t.Errorf("Names(): %v: -want, +got:\n%s", err, diff)
		}
		if got, err := s.Without("routeSelection"); err != nil || got != (Settings{}) {
			t.Errorf("Without(...): want no setting, got %+v, %v", got, err)
		}
	}
	sim := simtest.StartAPI(t)
	c := newClient(t, sim, nil)
	if err := c.Tailnet().PatchSettings(t.Context(), Settings{RouteSelection: pointer("regional-routing")}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Tailnet().Settings(t.Context(), Cached)
	if err != nil || got.RouteSelection == nil || *got.RouteSelection != "regional-routing" || got.RegionalRoutingOn == nil || !*got.RegionalRoutingOn {
		t.Errorf("Settings(...): want both names of regional routing, got %+v, %v", got, err)
	}
	both := Settings{RegionalRoutingOn: pointer(true), RouteSelection: pointer("magicroute")}
	if err := c.Tailnet().PatchSettings(t.Context(), both); ClassOf(err) != ClassInvalid {
		t.Errorf("PatchSettings(...) with both names: want Invalid, got: %v", err)
	}
}

func TestSettingsWithoutNames(t *testing.T) {
	s := Settings{HTTPSEnabled: pointer(true), ACLsExternalLink: pointer("")}
	names, err := s.Names()
	if diff := cmp.Diff([]string{"aclsExternalLink", "httpsEnabled"}, names); err != nil || diff != "" {
		t.Errorf("Names(): %v: -want, +got:\n%s", err, diff)
	}
	got, err := s.Without("httpsEnabled")
	if diff := cmp.Diff(Settings{ACLsExternalLink: pointer("")}, got); err != nil || diff != "" {
		t.Errorf("Without(...): %v: -want, +got:\n%s", err, diff)
	}
}

// TestSharedValues verifies that many callers of unchanged values cost one call per value, and that
// a refusal is shared as well.
func TestSharedValues(t *testing.T) {
	sim := simtest.StartAPI(t, as("devices:core", "dns", "account_settings"))
	c := newClient(t, sim, nil)
	ctx := t.Context()
	for range 5 {
		if _, err := c.Tailnet().Settings(ctx, Cached); ClassOf(err) != ClassForbidden {
			t.Fatalf("Settings(...) without a scope: want Forbidden, got: %v", err)
		}
		if enabled, err := c.DNS().MagicDNS(ctx, Cached); err != nil || !enabled {
			t.Fatalf("MagicDNS(...): %t, %v", enabled, err)
		}
		if _, err := c.DNS().DNS(ctx, Cached); err != nil {
			t.Fatalf("DNS(...): %v", err)
		}
		if _, err := c.Tailnet().Contacts(ctx, Cached); err != nil {
			t.Fatalf("Contacts(...): %v", err)
		}
		if o, err := c.Tailnet().Organization(ctx, "tail1234.ts.net"); err != nil || o != (Organization{}) {
			t.Fatalf("Organization(...) without a scope: want an empty organization, got %v, %v", o, err)
		}
	}
	calls := sim.Calls()
	for name, want := range map[string]int{
		"GET /api/v2/tailnet/{tailnet}/settings":            1,
		"GET /api/v2/tailnet/{tailnet}/dns/preferences":     2, // One is part of all DNS settings.
		"GET /api/v2/tailnet/{tailnet}/dns/nameservers":     1,
		"GET /api/v2/tailnet/{tailnet}/contacts":            1,
		"GET /api/v2/organizations/{organization}/tailnets": 1,
	} {
		if got := calls[name]; got != want {
			t.Errorf("%s: want %d calls, got %d", name, want, got)
		}
	}
}

func TestDNSLifecycle(t *testing.T) {
	c := newClient(t, simtest.StartAPI(t), nil)
	ctx := t.Context()
	// Nameservers come first: without them the API rejects MagicDNS, which the call of
	// SetOverrideLocalDNS writes as well.
	for _, step := range []struct {
		method string
		err    error
	}{
		{"SetNameservers", c.DNS().SetNameservers(ctx, []string{"1.1.1.1"})},
		{"SetSearchPaths", c.DNS().SetSearchPaths(ctx, []string{"a.example"})},
		{"PatchSplitDNS", c.DNS().PatchSplitDNS(ctx, map[string][]string{"b.example": {"9.9.9.9"}, "c.example": {"8.8.8.8"}})},
		{"SetOverrideLocalDNS", c.DNS().SetOverrideLocalDNS(ctx, true)},
	} {
		if step.err != nil {
			t.Fatalf("%s(...): %v", step.method, step.err)
		}
	}
	if err := c.DNS().PatchSplitDNS(ctx, map[string][]string{"b.example": nil}); err != nil {
		t.Fatalf("PatchSplitDNS(...): %v", err)
	}
	want := DNS{Nameservers: []string{"1.1.1.1"}, SearchPaths: []string{"a.example"}, SplitDNS: map[string][]string{"c.example": {"8.8.8.8"}}, MagicDNS: true}
	got, err := c.DNS().DNS(ctx, Cached)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("DNS(...): %v: -want, +got:\n%s", err, diff)
	}
	if enabled, err := c.DNS().OverrideLocalDNS(ctx, Cached); err != nil || !enabled {
		t.Errorf("OverrideLocalDNS(...): %t, %v", enabled, err)
	}
	// A write and its side effects are visible immediately.
	if err := c.DNS().SetNameservers(ctx, nil); err != nil {
		t.Fatalf("SetNameservers(...): %v", err)
	}
	if enabled, err := c.DNS().MagicDNS(ctx, AtMost(time.Hour)); err != nil || enabled {
		t.Errorf("MagicDNS(...) without nameservers: %t, %v", enabled, err)
	}
	if err := c.DNS().SetMagicDNS(ctx, true); ClassOf(err) != ClassInvalid {
		t.Errorf("SetMagicDNS(...) without nameservers: want Invalid, got: %v", err)
	}
	if err := c.DNS().SetNameservers(ctx, []string{"1.1.1.1"}); err != nil {
		t.Fatalf("SetNameservers(...): %v", err)
	}
	if err := c.DNS().SetMagicDNS(ctx, true); err != nil {
		t.Fatalf("SetMagicDNS(...): %v", err)
	}
	if got, err := c.DNS().DNS(ctx, AtMost(time.Hour)); err != nil || !got.MagicDNS || len(got.Nameservers) != 1 {
		t.Errorf("DNS(...): %+v, %v", got, err)
	}
	if err := c.DNS().SetNameservers(ctx, []string{"nonsense"}); ClassOf(err) != ClassInvalid {
		t.Errorf("SetNameservers(...) with an invalid address: want Invalid, got: %v", err)
	}
}

func TestContactsLifecycle(t *testing.T) {
	c := newClient(t, simtest.StartAPI(t), nil)
	ctx := t.Context()
	original, err := c.Tailnet().Contacts(ctx, Cached)
	if err != nil {
		t.Fatalf("Contacts(...): %v", err)
	}
	if err := c.Tailnet().SetContact(ctx, "security", "security@example.com"); err != nil {
		t.Fatalf("SetContact(...): %v", err)
	}
	want := original
	want.Security = Contact{Email: "security@example.com", FallbackEmail: original.Security.Email, NeedsVerification: true}
	got, err := c.Tailnet().Contacts(ctx, AtMost(time.Hour))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Contacts(...): %v: -want, +got:\n%s", err, diff)
	}
	if err := c.Tailnet().SetContact(ctx, "security", "nonsense"); ClassOf(err) != ClassInvalid {
		t.Errorf("SetContact(...) with an invalid address: want Invalid, got: %v", err)
	}
}

func TestOrganization(t *testing.T) {
	cases := map[string]struct {
		reason string
		sim    simtest.Option
		fault  tailnetsim.Fault
		domain string
		want   bool
		all    bool
		err    Class
	}{
		"Found":   {reason: "The tailnet is found by its DNS name.", domain: "tail1234.ts.net", want: true, all: true},
		"Absent":  {reason: "A tailnet that is not listed has the same owner as the listed tailnets.", domain: "tail9.ts.net", want: true},
		"NoScope": {reason: "The result is empty for a credential without access.", sim: as("dns"), domain: "tail1234.ts.net"},
		"NoCall":  {reason: "The result is empty if the API lacks the call.", fault: tailnetsim.Fault{Path: "organizations", Status: http.StatusNotFound}, domain: "tail1234.ts.net"},
		"Down":    {reason: "An unavailable API is an error.", fault: tailnetsim.Fault{Path: "organizations", Status: http.StatusBadGateway}, err: ClassUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var opts []simtest.Option
			if tc.sim != nil {
				opts = append(opts, tc.sim)
			}
			sim := simtest.StartAPI(t, opts...)
			if tc.fault.Status != 0 {
				if err := sim.SetFaults(tc.fault); err != nil {
					t.Fatal(err)
				}
			}
			got, err := newClient(t, sim, nil).Tailnet().Organization(t.Context(), tc.domain)
			if ClassOf(err) != tc.err {
				t.Fatalf("\n%s\nOrganization(...): want class %q, got: %v", tc.reason, tc.err, err)
			}
			if (got.ID != "") != tc.want || (got.TailnetID != "" && got.TailnetName == "example.com") != tc.all {
				t.Errorf("\n%s\nOrganization(...): got %+v", tc.reason, got)
			}
		})
	}
}
