// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

func TestPending(t *testing.T) {
	right, wrong := causes.Condition{Type: "Ready", Status: "True"}, causes.Condition{Type: "Ready", Status: "False", Message: "cannot pull"}
	healthy := func() Progress {
		p := Progress{}
		p.Packages.Value = map[string]check.Package{}
		for _, name := range []string{products.Provider, products.Function, products.Configuration} {
			p.Packages.Value[name] = check.Package{Installed: right, Healthy: right}
		}
		p.Definitions.Value = map[string]check.Definition{"a": {Established: right}}
		return p
	}
	cases := map[string]struct {
		reason string
		change func(p *Progress)
		want   string
	}{
		"Ready":   {reason: "Nothing is left.", change: func(*Progress) {}},
		"Absent":  {reason: "A package that Crossplane has not seen is pending.", change: func(p *Progress) { delete(p.Packages.Value, products.Function) }, want: "the package function-tailscale"},
		"Pulling": {reason: "The message says why.", change: func(p *Progress) { p.Packages.Value[products.Provider] = check.Package{Installed: wrong} }, want: "provider-tailscale, which is not installed: cannot pull"},
		"Upgrade": {reason: "Conditions of the former version do not count.", change: func(p *Progress) {
			p.Packages.Value[products.Provider] = check.Package{Image: "p:v2", Current: "p:v1", Installed: right, Healthy: right}
		}, want: "provider-tailscale, whose version Crossplane has not changed yet"},
		"Unhealthy":   {reason: "A package must be healthy.", change: func(p *Progress) { p.Packages.Value[products.Provider] = check.Package{Installed: right} }, want: "provider-tailscale, which is not healthy"},
		"Kinds":       {reason: "So must the kinds be established.", change: func(p *Progress) { p.Definitions.Value["b"] = check.Definition{} }, want: "the kinds, of which 1 of 2 are established"},
		"NoKinds":     {reason: "No kind is none.", change: func(p *Progress) { p.Definitions.Value = nil }, want: "the kinds, of which 0 of 0 are established"},
		"Claims":      {reason: "Claims must be offered.", change: func(p *Progress) { p.Definitions.Value["a"] = check.Definition{Claims: true, Established: right} }, want: "the kinds, of which 0 of 1 are established"},
		"Unknown":     {reason: "Nobody waits for packages that the caller may not read.", change: func(p *Progress) { p.Packages = check.Answer[map[string]check.Package]{Unknown: "forbidden"} }},
		"Failed":      {reason: "A question without an answer is asked again.", change: func(p *Progress) { p.Failure = "the list of kinds is stale" }, want: "an answer of the API server: the list of kinds is stale"},
		"Requested":   {reason: "The provider creates the tailnet.", change: func(p *Progress) { p.Tailnet = "example" }, want: "TailscaleTailnet example, which the provider creates"},
		"Deleted":     {reason: "A tailnet that the user has deleted since does not come back.", change: func(p *Progress) { p.Tailnet, p.Created = "example", true }},
		"NotReady":    {reason: "A tailnet says why it is not ready.", change: func(p *Progress) { p.Tailnet, p.Conditions = "example", []causes.Condition{wrong} }, want: "TailscaleTailnet example, which is not ready: cannot pull"},
		"New":         {reason: "A tailnet without conditions is not ready.", change: func(p *Progress) { p.Tailnet, p.Conditions = "example", []causes.Condition{} }, want: "TailscaleTailnet example, which is not ready"},
		"TailnetDone": {reason: "A tailnet that is ready is the end.", change: func(p *Progress) { p.Tailnet, p.Conditions = "example", []causes.Condition{right} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			tc.change(&p)
			if diff := cmp.Diff(tc.want, Pending(p)); diff != "" {
				t.Errorf("%s\nPending(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
