// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// foreign returns a manifest with another namespace.
func foreign(manifest string) string {
	return strings.Replace(manifest, "namespace: infra}\nspec:", "namespace: shop}\nspec:", 1)
}

// grantOf returns a ReferenceGrant from one kind of a namespace to another kind in the
// Gateway's namespace.
func grantOf(from, to string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: identity, namespace: infra}
spec:
  from: [` + from + `]
  to: [` + to + `]
`
}

// identityOf returns a TailscaleGateway that asks for the client's identity at a listener of
// a Gateway.
func identityOf(name, gateway, listener string) string {
	return `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: ` + name + `, namespace: infra}
spec:
  gatewayRef: {namespace: infra, name: ` + gateway + `}
  tailnets:
  - name: corp
    listeners: [{name: other}, {name: addresses, identity: ProxyProtocol}, {name: ` + listener + `, identity: Headers}]
`
}

// tailnetStatus adds what the function reports about the tailnet of a TailscaleGateway.
func tailnetStatus(manifest, status, reason, ready string) string {
	return manifest + `
status:
  conditions: [{type: TailnetsValid, status: "` + status + `", reason: ` + reason + `, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  dependencyStatus:
  - {kind: Gateway, namespace: infra, name: gw, ready: false}
  - {kind: TailscaleTailnet, name: corp, ready: ` + ready + `}
  - {kind: TailscaleTailnet, name: other, ready: false}
`
}

func TestIdentified(t *testing.T) {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	const own = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: a, namespace: infra}
spec: {gatewayRef: {name: gw}, tailnets: [{name: corp, listeners: [{name: http, identity: Headers}]}]}
`
	const (
		fromShop  = "{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: shop}"
		toGateway = "{group: gateway.networking.k8s.io, kind: Gateway}"
	)
	unchosen := strings.Replace(own, "gatewayRef: {name: gw}, ", "", 1)
	chosen := unchosen + "status: {gatewayRef: {name: gw}}\n"
	theirs := foreign(identityOf("a", "gw", "http"))
	granted := grantOf(fromShop, toGateway)
	type want struct {
		Listeners []ir.IdentityListener
		Wanted    bool
	}
	found := want{Listeners: []ir.IdentityListener{{Name: "http", Port: 80}}, Wanted: true}
	cases := map[string]struct {
		reason  string
		docs    []string
		deleted string
		want    want
	}{
		"Gateway":   {reason: "Without a TailscaleGateway there should be no identity listeners.", docs: []string{gateway}},
		"Found":     {reason: "An HTTP listener should be found with its port.", docs: []string{gateway, identityOf("a", "gw", "http")}, want: found},
		"Before":    {reason: "The order of the objects should not matter.", docs: []string{identityOf("a", "gw", "http"), gateway}, want: found},
		"Namespace": {reason: "Without a namespace the Gateway is in the namespace of the object.", docs: []string{own, gateway}, want: found},
		"Chosen":    {reason: "Without a reference the Gateway is the one in the status.", docs: []string{chosen, gateway}, want: found},
		"NotChosen": {reason: "Without a Gateway in the status there is none.", docs: []string{gateway, unchosen}},
		"ChosenNow": {reason: "The Gateway may appear in the status later.", docs: []string{gateway, unchosen, chosen}, want: found},
		"ChosenFar": {reason: "A status names no Gateway of another namespace, not even with its grant.", docs: []string{granted, gateway, strings.Replace(chosen, "namespace: infra", "namespace: shop", 1)}},
		"Two":       {reason: "Two objects with the same listener should have it once.", docs: []string{gateway, identityOf("a", "gw", "http"), identityOf("b", "gw", "http")}, want: found},
		"TLS":       {reason: "A listener that terminates TLS cannot get the identity, so headers from clients there are not genuine.", docs: []string{gateway, identityOf("a", "gw", "https")}, want: want{Wanted: true}},
		"Missing":   {reason: "An unknown listener should not be confused with another one.", docs: []string{gateway, identityOf("a", "gw", "gone")}, want: want{Wanted: true}},
		"NoGateway": {reason: "An unknown Gateway should have no identity listeners.", docs: []string{identityOf("a", "gw", "http")}, want: want{Wanted: true}},
		"Other":     {reason: "The identity listeners of another Gateway should not affect this one.", docs: []string{gateway, identityOf("a", "gw2", "http")}},
		"Moved":     {reason: "An object that now names another Gateway should be removed from this one.", docs: []string{gateway, identityOf("a", "gw", "http"), identityOf("a", "gw2", "http")}},
		"Gone":      {reason: "A deleted object should be removed.", docs: []string{gateway, identityOf("a", "gw", "http")}, deleted: identityOf("a", "gw", "http")},
		"Foreign":   {reason: "An object of another namespace changes no listener: Envoy neither trusts nor drops headers for it.", docs: []string{gateway, theirs}},
		"Granted":   {reason: "A ReferenceGrant should permit an object of another namespace.", docs: []string{granted, gateway, theirs}, want: found},
		"GrantLate": {reason: "A grant that is created later should apply.", docs: []string{gateway, theirs, granted}, want: found},
		"GrantGone": {reason: "A deleted grant should not apply.", docs: []string{gateway, theirs, granted}, deleted: granted},
		"GrantName": {reason: "A grant for the Gateway by name should be enough.", docs: []string{gateway, theirs, grantOf(fromShop, "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}")}, want: found},
		"GrantTo":   {reason: "A grant for another Gateway or for Services should not apply.", docs: []string{gateway, theirs, grantOf(fromShop, "{group: gateway.networking.k8s.io, kind: Gateway, name: gw2}, {group: '', kind: Service}")}},
		"GrantFrom": {reason: "A grant to another kind or namespace should not apply.", docs: []string{gateway, theirs, grantOf("{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}, {group: gateway.tailscale.com, kind: TailscaleGateway, namespace: blog}", toGateway)}},
		"GrantAway": {reason: "A grant in another namespace than the Gateway's should not apply.", docs: []string{gateway, theirs, strings.Replace(granted, "namespace: infra", "namespace: shop", 1)}},
		"Beside":    {reason: "An object without a grant should neither remove nor add listeners of permitted objects.", docs: []string{gateway, identityOf("b", "gw", "http"), strings.Replace(theirs, "{name: other}", "{name: web, identity: Headers}", 1)}, want: found},
		"Refused":   {reason: "An object whose tailnet does not allow its namespace changes no listener.", docs: []string{gateway, tailnetStatus(identityOf("a", "gw", "http"), "False", "NamespaceNotAllowed", "false")}},
		"RefusedTo": {reason: "Nor does one that the tailnet no longer allows.", docs: []string{gateway, identityOf("a", "gw", "http"), tailnetStatus(identityOf("a", "gw", "http"), "False", "NamespaceNotAllowed", "false")}},
		"Allowed":   {reason: "One that the tailnet allows again does.", docs: []string{gateway, tailnetStatus(identityOf("a", "gw", "http"), "False", "NamespaceNotAllowed", "false"), identityOf("a", "gw", "http")}, want: found},
		"RefusedBy": {reason: "Another tailnet of the object may refuse it.", docs: []string{gateway, tailnetStatus(identityOf("a", "gw", "http"), "False", "NamespaceNotAllowed", "true")}, want: found},
		"Unknown":   {reason: "While Crossplane reads the tailnet, listeners stay: others would trust forged headers.", docs: []string{gateway, tailnetStatus(identityOf("a", "gw", "http"), "Unknown", "Waiting", "false")}, want: found},
		"NoTailnet": {reason: "A tailnet that is gone for a while refuses nobody.", docs: []string{gateway, tailnetStatus(identityOf("a", "gw", "http"), "False", "TailnetNotFound", "false")}, want: found},
		"GoneOf":    {reason: "A deleted Gateway should have no listeners.", docs: []string{gateway, identityOf("a", "gw", "http")}, deleted: gateway, want: want{Wanted: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			for _, d := range tc.docs {
				apply(t, s, false, d)
			}
			if tc.deleted != "" {
				apply(t, s, true, tc.deleted)
			}
			got := want{}
			if got.Listeners, got.Wanted = s.Snapshot().IdentityListeners(gw); len(got.Listeners) == 0 {
				got.Listeners = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if exists := s.Snapshot().GatewayDigest(gw) != ""; exists != tc.want.Wanted {
				t.Errorf("%s\nthe Gateway has a digest: %t", tc.reason, exists)
			}
		})
	}
}
