// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/targets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

func TestLimits(t *testing.T) {
	use := func(name string, limit Limit, n int) Usage {
		return Usage{Object: "TailscaleEndpoints shop/" + name, Limit: limit, Count: n}
	}
	cases := map[string]struct {
		reason string
		usages []Usage
		want   []string
	}{
		"Below": {reason: "Less than four fifths is not near.", usages: []Usage{use("a", LimitTargets, 1638), use("a", LimitCertificates, 119)}},
		"Near": {
			reason: "Four fifths are near.", usages: []Usage{use("a", LimitTargets, 1639), use("a", LimitCertificates, 120)},
			want: []string{
				"The limit of 2048 targets is near: TailscaleEndpoints shop/a has 1639",
				"The limit of 150 names with a certificate of Tailscale, which share one Secret is near: TailscaleEndpoints shop/a has 120",
			},
		},
		"Fullest": {
			reason: "One limit is one line, and the fullest object is first.", usages: []Usage{use("a", LimitDiscovered, 450), use("b", LimitDiscovered, 512), use("c", LimitDiscovered, 1), use("d", LimitDiscovered, 451), use("e", LimitDiscovered, 452)},
			want: []string{"The limit of 512 discovered devices and services is near: TailscaleEndpoints shop/b has 512, TailscaleEndpoints shop/e has 452, TailscaleEndpoints shop/d has 451 and 1 more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, found := range limits(Facts{Usages: Answer[[]Usage]{Value: tc.usages}}, defaults()).findings {
				got = append(got, found.Summary)
				if found.Status != Warning || found.Fix == "" || found.Impact == "" {
					t.Errorf("%s\nlimits(...): no warning with a next step: %+v", tc.reason, found)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nlimits(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLimitsDocumented holds the limits against those that docs/limits.md names, and those that functions have.
func TestLimitsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[Limit]string{
		LimitTargets:         "| targets of a TailscaleEndpoints | %d |",
		LimitDiscovered:      "| discovered endpoints of a TailscaleEndpoints, and services of a tailnet for a Gateway | %d |",
		LimitListed:          "| services that a TailscaleServices lists | %d |",
		LimitGatewayServices: "| Tailscale Services of a TailscaleGateway | %d |",
		LimitHostnames:       "| hostnames that a Gateway resolves in a tailnet, without `domains` | %d |",
		LimitRoutes:          "| routes, and generated routes, of a Gateway's report | %d |",
		LimitGeneratedRoutes: "| routes, and generated routes, of a Gateway's report | %d |",
		LimitCertificates:    "**%d to 200 names for each TailscaleEndpoints.**",
		LimitNewCertificates: "| %d new names a week for a registered domain |",
	}
	most := map[Limit]int{}
	for _, d := range limitDefinitions() {
		most[d.limit] = d.most
		if row := fmt.Sprintf(rows[d.limit], d.most); rows[d.limit] == "" || !strings.Contains(string(b), row) {
			t.Errorf("docs/limits.md lacks %q", row)
		}
	}
	if most[LimitTargets] != targets.Max || most[LimitDiscovered] != discovery.MaxResults {
		t.Errorf("functions have %d targets and %d discovered endpoints", targets.Max, discovery.MaxResults)
	}
}

func TestGatewayServices(t *testing.T) {
	gateway := causes.Reference{Kind: "TailscaleGateway", Namespace: "shop", Name: "web"}
	objects := []causes.Object{
		{Reference: causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: "a"}, Owner: gateway},
		{Reference: causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: "b"}, Owner: gateway},
		{Reference: causes.Reference{Kind: "TailscaleEndpoints", Namespace: "shop", Name: "c"}, Owner: gateway},
		{Reference: causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: "d"}},
	}
	want := []Usage{{Object: "TailscaleGateway shop/web", Limit: LimitGatewayServices, Count: 2}}
	if diff := cmp.Diff(want, GatewayServices(objects)); diff != "" {
		t.Errorf("GatewayServices(...): -want, +got:\n%s", diff)
	}
}
