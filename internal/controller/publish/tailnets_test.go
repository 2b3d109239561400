// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
)

// failing cannot say what a namespace may do.
type failing struct{}

func (failing) Grant(context.Context, string, xpv2.ProviderConfigReference) (*allow.Grant, error) {
	return nil, errBoom
}

func TestTailnetProblem(t *testing.T) {
	type want struct {
		reason  event.Reason
		message string // A part of it.
		err     error
	}
	cases := map[string]struct {
		reason   string
		tailnets []client.Object
		grants   granter
		name     string
		want     want
	}{
		"Only":       {reason: "The only tailnet that allows the namespace needs no name.", tailnets: []client.Object{tailnet("home"), tailnet("work")}, grants: grantTo{"home": "shop"}},
		"None":       {reason: "A namespace that none allows may use none.", tailnets: []client.Object{tailnet("home")}, grants: grantTo{}, want: want{reason: "NamespaceNotAllowed", message: "No TailscaleTailnet allows"}},
		"NoTailnet":  {reason: "Without a tailnet, neither.", grants: grantTo{}, want: want{reason: "NamespaceNotAllowed", message: "or create one"}},
		"Several":    {reason: "Of several, the Service has to name one.", tailnets: []client.Object{tailnet("work"), tailnet("home")}, grants: grantTo{"home": "shop", "work": "shop"}, want: want{reason: "Ambiguous", message: `such as "home" and "work"; name one in the annotation gateway.tailscale.com/tailnet`}},
		"Named":      {reason: "It may.", tailnets: []client.Object{tailnet("work"), tailnet("home")}, grants: grantTo{"home": "shop", "work": "shop"}, name: "work"},
		"NamedOther": {reason: "One that does not allow the namespace is no choice.", tailnets: []client.Object{tailnet("work"), tailnet("home")}, grants: grantTo{"home": "shop"}, name: "work", want: want{reason: "NamespaceNotAllowed", message: `TailscaleTailnet "work" does not allow namespace "shop"`}},
		"NamedNone":  {reason: "Nor one that does not exist.", tailnets: []client.Object{tailnet("home")}, grants: grantTo{"home": "shop"}, name: "none", want: want{reason: "TailnetNotFound", message: `no TailscaleTailnet "none"`}},
		"Err":        {reason: "An error is no answer.", tailnets: []client.Object{tailnet("home")}, grants: failing{}, want: want{err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := tailnetProblem(t.Context(), fakeClient(nil, tc.tailnets...), tc.grants, "shop", tc.name)
			got := want{err: err}
			if p != nil {
				got.reason, got.message = p.reason, p.message
				if tc.want.message != "" && strings.Contains(p.message, tc.want.message) {
					got.message = tc.want.message
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\ntailnetProblem(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
