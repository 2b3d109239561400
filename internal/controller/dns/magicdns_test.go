// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestMagicDNSStaysOn removes the last nameservers of a tailnet with MagicDNS. Tailscale turns
// MagicDNS on again without nameservers in some cases, and refuses in others.
func TestMagicDNSStaysOn(t *testing.T) {
	both := nameservers("1.1.1.1")
	both.SearchPaths = &[]string{"a.example"}
	cases := map[string]struct {
		reason string
		strict bool
		edit   func(p *v1alpha1.DNSParameters) // Nil deletes the object.
		crash  bool
		want   tailscale.DNS
	}{
		"Deleted":       {reason: "MagicDNS is turned on again.", want: tailscale.DNS{MagicDNS: true}},
		"DeletedStrict": {reason: "If Tailscale refuses this, the nameservers stay, and the object is deleted.", strict: true, want: tailscale.DNS{MagicDNS: true, Nameservers: []string{"1.1.1.1"}}},
		"CrashedStrict": {reason: "The nameservers stay after a crash during the deletion.", strict: true, crash: true, want: tailscale.DNS{MagicDNS: true, Nameservers: []string{"1.1.1.1"}}},
		"EditedStrict": {
			reason: "The nameservers stay when the spec no longer has them.", strict: true,
			edit: func(p *v1alpha1.DNSParameters) { p.Nameservers = nil },
			want: tailscale.DNS{MagicDNS: true, Nameservers: []string{"1.1.1.1"}, SearchPaths: []string{"a.example"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{DNS: tailscale.DNS{MagicDNS: true}, strict: tc.strict}
			c := newCluster(t, api, object("a", 0, both))
			if errs := c.settle(t, "a"); errs["a"] != nil {
				t.Fatalf("\n%s\n%v", tc.reason, errs["a"])
			}
			if tc.edit == nil {
				c.remove(t, "a")
			} else {
				mg := c.get(t, "a")
				tc.edit(&mg.Spec.ForProvider)
				if err := c.kube.Update(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
			}
			if tc.crash {
				api.loseReply = map[string]error{"SetNameservers": errBoom}
				c.settle(t, "a")
				api.loseReply = nil
			}
			if errs := c.settle(t, "a"); errs["a"] != nil {
				t.Errorf("\n%s\n%v", tc.reason, errs["a"])
			}
			if diff := cmp.Diff(tc.want, api.state(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if deleted := c.get(t, "a").GetName() == ""; deleted != (tc.edit == nil) {
				t.Errorf("\n%s\nthe object is deleted: %t", tc.reason, deleted)
			}
		})
	}
}

// TestMagicDNSRefused turns MagicDNS on without a nameserver.
func TestMagicDNSRefused(t *testing.T) {
	api := &fakeAPI{strict: true}
	c := newCluster(t, api, object("a", 0, v1alpha1.DNSParameters{Preferences: &v1alpha1.DNSPreferences{MagicDNS: true}, SearchPaths: &[]string{"a.example"}}))
	errs := c.settle(t, "a")
	if ready := c.get(t, "a").GetCondition(xpv2.TypeReady); errs["a"] == nil || ready.Reason != meta.ReasonMagicDNSRefused {
		t.Errorf("want an error and a condition, got %v, %+v", errs["a"], ready)
	}
	c.remove(t, "a")
	if errs := c.settle(t, "a"); errs["a"] != nil || c.get(t, "a").GetName() != "" {
		t.Errorf("the object must be deleted: %v", errs["a"])
	}
}
