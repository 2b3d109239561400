// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// routeTo returns a route to our kinds with a status of Envoy Gateway.
func routeTo(created time.Time, status, reason string, changed time.Time) Route {
	message := ""
	if status == "False" {
		message = "custom backend TailscaleServices shop/web not found"
	}
	return Route{
		Reference: causes.Reference{Kind: "HTTPRoute", Namespace: "shop", Name: "web"}, Created: created,
		References: []ResolvedReferences{{
			Controller: "gateway.envoyproxy.io/gatewayclass-controller", Status: status, Reason: reason, Message: message, Current: true, Changed: changed,
		}},
	}
}

// TestStart covers an Envoy Gateway that is older than our kinds, as it is after an uninstallation and another
// installation.
func TestStart(t *testing.T) {
	const (
		services  = "Envoy Gateway started before the kind tailscaleservices.gateway.tailscale.com existed (2026-11-28 09:00:00, 10:00:00)"
		revisions = "Envoy Gateway started before the kind tailscalerevisions.gateway.tailscale.com existed (2026-11-28 09:00:00, 10:00:00)"
		looks     = "It looks for our kinds only at its start, unless it watched them before somebody deleted them. "
		restart   = "kubectl rollout restart deployment/envoy-gateway --namespace=envoy-gateway-system"
	)
	created := at.Add(-2 * time.Hour) // Our kinds.
	warn := func(summary, proof string) []Finding {
		return []Finding{{Status: Warning, Summary: summary, Impact: looks + proof, Fix: restart}}
	}
	refused := []Finding{{
		Status: Wrong, Summary: services + ": HTTPRoute shop/web has no backend for it: custom backend TailscaleServices shop/web not found",
		Impact: "It looks for our kinds only at its start, and refuses routes to them.", Fix: restart,
	}}
	serves := routeTo(created.Add(-time.Hour), "True", "ResolvedRefs", created.Add(time.Minute))
	other := func(r Route) Route {
		r.References = []ResolvedReferences{r.References[0]}
		r.References[0].Controller = "example.com/other"
		return r
	}
	cases := map[string]struct {
		reason string
		routes Answer[[]Route]
		change func(*Facts)
		want   []Finding
	}{
		"NoRoute":     {reason: "Without a route nothing shows whether Envoy Gateway watches the kinds.", want: warn(services, "No route shows whether it does.")},
		"Unread":      {reason: "Nor without the right to read routes.", routes: Answer[[]Route]{Unknown: "forbidden"}, want: warn(services, "Routes, which you may not read, would show whether it does.")},
		"Serves":      {reason: "A status that is newer than the kinds shows it; the CRD of revisions may still be newer.", routes: Answer[[]Route]{Value: []Route{serves}}, want: warn(revisions, "Nothing shows whether it does.")},
		"ServesNewer": {reason: "So does the status of a route that is newer than the kinds.", routes: Answer[[]Route]{Value: []Route{routeTo(created, "True", "ResolvedRefs", created)}}, change: keepRevisions, want: nil},
		"Reinstalled": {reason: "If revisions stayed, all is right.", routes: Answer[[]Route]{Value: []Route{serves}}, change: keepRevisions, want: nil},
		"Old":         {reason: "A status that is older than the kinds shows nothing.", routes: Answer[[]Route]{Value: []Route{routeTo(created.Add(-time.Hour), "True", "ResolvedRefs", created.Add(-time.Minute))}}, want: warn(services, "No route shows whether it does.")},
		"NotCurrent": {
			reason: "Nor does a status of an earlier spec.", routes: Answer[[]Route]{Value: []Route{{Created: at, References: []ResolvedReferences{{Controller: "gateway.envoyproxy.io/gatewayclass-controller", Status: "True", Changed: at}}}}},
			want: warn(services, "No route shows whether it does."),
		},
		"OtherController": {reason: "Nor does what another controller says.", routes: Answer[[]Route]{Value: []Route{other(serves)}}, want: warn(services, "No route shows whether it does.")},
		"Refused":         {reason: "A route without its backend is the proof.", routes: Answer[[]Route]{Value: []Route{routeTo(at, "False", "BackendNotFound", at)}}, want: refused},
		"OneServes":       {reason: "Where another route is served, the backend is missing.", routes: Answer[[]Route]{Value: []Route{routeTo(at, "False", "BackendNotFound", at), serves}}, change: keepRevisions, want: nil},
		"RefNotPermitted": {reason: "Other faults of a route are its own.", routes: Answer[[]Route]{Value: []Route{routeTo(at, "False", "RefNotPermitted", at)}}, want: warn(services, "No route shows whether it does.")},
		"Younger":         {reason: "An Envoy Gateway that started later knows all.", change: func(f *Facts) { f.Gateway.Started.Value = at }, want: nil},
		"NotRunning":      {reason: "One that does not run will look for them.", change: func(f *Facts) { f.Gateway.Started.Value = time.Time{} }, want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Facts{At: at, CRDs: Answer[map[string]CRD]{Value: map[string]CRD{crdServices: {Created: created}, crdEndpoints: {Created: created}, crdRevisions: {Created: created}}}}
			f.Gateway.Started.Value, f.Gateway.Routes = at.Add(-3*time.Hour), tc.routes
			if tc.change != nil {
				tc.change(&f)
			}
			if diff := cmp.Diff(tc.want, start(f, defaults()).findings); diff != "" {
				t.Errorf("%s\nstart(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// keepRevisions makes the CRD of revisions older than Envoy Gateway.
func keepRevisions(f *Facts) { f.CRDs.Value[crdRevisions] = CRD{Created: at.Add(-24 * time.Hour)} }
