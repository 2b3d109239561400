// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func get(url string, status int, reply string) exchange {
	x := exchange{Method: "GET", URL: url, Status: status}
	if err := json.Unmarshal([]byte(reply), &x.Reply); err != nil {
		x.Reply = reply
	}
	return x
}

func TestCompareRuns(t *testing.T) {
	base := func() result {
		return result{
			Section: "s", Name: "r", Outcome: outcomePass, Observed: map[string]any{"status": 200.0}, Seconds: map[string]float64{"wait": 1},
			Exchanges: []exchange{get("/api/v2/tailnet/-/devices?fields=all", 200, `{"devices": [{"name": "a.example.ts.net", "tags": ["tag:a"], "n": 1}]}`)},
		}
	}
	cases := map[string]struct {
		reason string
		second func(r *result)
		want   []string
	}{
		"Same": {
			reason: "Names, times and numbers of elements do not count.",
			second: func(r *result) {
				r.Seconds["wait"] = 17
				r.Exchanges = []exchange{get("/api/v2/tailnet/example.com/devices", 200, `{"devices": [{"name": "b", "tags": ["x", "y"], "n": 2}, {"name": "c", "tags": [], "n": 3}]}`)}
			},
		},
		"Outcome": {
			reason: "Another outcome is shown with its reason.",
			second: func(r *result) { r.Outcome, r.Reason = outcomeFail, "boom" },
			want:   []string{"~ s/r: PASS, then FAIL (boom)"},
		},
		"Observed": {
			reason: "Observations are compared by value.",
			second: func(r *result) { r.Observed = map[string]any{"status": 403.0, "more": true} },
			want:   []string{"~ s/r: more: nothing, then true", "~ s/r: status: 200, then 403"},
		},
		"Type": {
			reason: "Another type of a field is a difference, and so is an additional field.",
			second: func(r *result) {
				r.Exchanges = []exchange{get("/api/v2/tailnet/-/devices", 200, `{"devices": [{"name": 1, "tags": ["x"], "n": 1, "extra": {"deep": 1}}]}`)}
			},
			want: []string{
				"~ GET /api/v2/tailnet/*/devices 200: devices[].extra: absent, then object",
				"~ GET /api/v2/tailnet/*/devices 200: devices[].name: string, then number",
			},
		},
		"EmptyList": {
			reason: "An empty list has no information about its elements.",
			second: func(r *result) {
				r.Exchanges = []exchange{get("/api/v2/tailnet/-/devices", 200, `{"devices": []}`)}
			},
		},
		"Status": {
			reason: "A status that one side never sees is a difference.",
			second: func(r *result) {
				r.Exchanges = append(r.Exchanges, get("/api/v2/device/n123CNTRL", 404, `{"message": "no"}`))
			},
			want: []string{"+ GET /api/v2/device/* 404: no such reply in the first"},
		},
		"NoRow": {
			reason: "A row of one side only is named.",
			second: func(r *result) { r.Name = "other" },
			want:   []string{"+ s/other: only in the second", "- s/r: only in the first"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			second := base()
			tc.second(&second)
			if diff := cmp.Diff(tc.want, compareRuns([]result{base()}, []result{second})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKindOfPath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v2/tailnet/-/vip-services/svc:web":                   "/api/v2/tailnet/*/vip-services/*",
		"/api/v2/tailnet/-/services/svc:web/device/n1/approved":    "/api/v2/tailnet/*/services/*/device/*/approved",
		"/api/v2/device/n1/attributes/custom:a":                    "/api/v2/device/*/attributes/*",
		"/api/v2/tailnet/devices/devices?fields=all":               "/api/v2/tailnet/*/devices",
		"/api/v2/tailnet/-/logging/network/stream":                 "/api/v2/tailnet/*/logging/network/stream",
		"/api/v2/organizations/-/tailnets":                         "/api/v2/organizations/*/tailnets",
		"/api/v2/tailnet/-/dns/split-dns":                          "/api/v2/tailnet/*/dns/split-dns",
		"/api/v2/tailnet/-/keys/kABCCNTRL":                         "/api/v2/tailnet/*/keys/*",
		"/api/v2/oauth/token":                                      "/api/v2/oauth/token",
		"/api/v2/webhooks/123/rotate":                              "/api/v2/webhooks/*/rotate",
		"/api/v2/tailnet/-/acl/validate":                           "/api/v2/tailnet/*/acl/validate",
		"/api/v2/tailnet/-/posture/integrations":                   "/api/v2/tailnet/*/posture/integrations",
		"/api/v2/tailnet/example.com/settings":                     "/api/v2/tailnet/*/settings",
		"/api/v2/tailnet/-/services/svc:tsgw-acc-x-create/devices": "/api/v2/tailnet/*/services/*/devices",
	} {
		if diff := cmp.Diff(want, kindOfPath(path)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", path, diff)
		}
	}
}
