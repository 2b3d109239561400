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

// foreign is what another namespace says.
func foreign(manifest string) string {
	return strings.Replace(manifest, "namespace: infra}\nspec:", "namespace: shop}\nspec:", 1)
}

// grantOf lets one kind of a namespace refer to another kind in the Gateway's.
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

// identityOf is a TailscaleGateway that has a listener of a Gateway told who asks.
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
	theirs := foreign(identityOf("a", "gw", "http"))
	granted := grantOf(fromShop, toGateway)
	type want struct {
		Listeners []ir.IdentityListener
		Wanted    bool
	}
	found := want{Listeners: []ir.IdentityListener{{Name: "http", Port: 80}}, Wanted: true}
	cases := map[string]struct {
		reason string
		docs   []string
		gone   string
		want   want
	}{
		"Gateway":   {reason: "Without a TailscaleGateway nobody is told.", docs: []string{gateway}},
		"Found":     {reason: "A listener of HTTP should be found, with its port.", docs: []string{gateway, identityOf("a", "gw", "http")}, want: found},
		"Before":    {reason: "It makes no difference which came first.", docs: []string{identityOf("a", "gw", "http"), gateway}, want: found},
		"Namespace": {reason: "Without a namespace the Gateway is in the object's own.", docs: []string{own, gateway}, want: found},
		"Two":       {reason: "Two that want the same should have it once.", docs: []string{gateway, identityOf("a", "gw", "http"), identityOf("b", "gw", "http")}, want: found},
		"TLS":       {reason: "A listener that ends TLS cannot be told, so clients' headers there are made up.", docs: []string{gateway, identityOf("a", "gw", "https")}, want: want{Wanted: true}},
		"Missing":   {reason: "While the listener is not known no other may be taken for it.", docs: []string{gateway, identityOf("a", "gw", "gone")}, want: want{Wanted: true}},
		"NoGateway": {reason: "While the Gateway is not known none of its listeners is.", docs: []string{identityOf("a", "gw", "http")}, want: want{Wanted: true}},
		"Other":     {reason: "What another Gateway is told is nothing of this one.", docs: []string{gateway, identityOf("a", "gw2", "http")}},
		"Moved":     {reason: "One that names another Gateway now should be forgotten here.", docs: []string{gateway, identityOf("a", "gw", "http"), identityOf("a", "gw2", "http")}},
		"Gone":      {reason: "One that is gone should be forgotten.", docs: []string{gateway, identityOf("a", "gw", "http")}, gone: identityOf("a", "gw", "http")},
		"Foreign":   {reason: "Another namespace may have headers dropped, and may not have them believed.", docs: []string{gateway, theirs}, want: want{Wanted: true}},
		"Granted":   {reason: "It may where a ReferenceGrant says so.", docs: []string{granted, gateway, theirs}, want: found},
		"GrantLate": {reason: "A grant that comes later counts.", docs: []string{gateway, theirs, granted}, want: found},
		"GrantGone": {reason: "One that is gone counts no more.", docs: []string{gateway, theirs, granted}, gone: granted, want: want{Wanted: true}},
		"GrantName": {reason: "A grant of the Gateway alone is enough.", docs: []string{gateway, theirs, grantOf(fromShop, "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}")}, want: found},
		"GrantTo":   {reason: "One of another Gateway, or of Services, is none.", docs: []string{gateway, theirs, grantOf(fromShop, "{group: gateway.networking.k8s.io, kind: Gateway, name: gw2}, {group: '', kind: Service}")}, want: want{Wanted: true}},
		"GrantFrom": {reason: "Neither is one to another kind, or namespace.", docs: []string{gateway, theirs, grantOf("{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}, {group: gateway.tailscale.com, kind: TailscaleGateway, namespace: blog}", toGateway)}, want: want{Wanted: true}},
		"GrantAway": {reason: "One of another namespace than the Gateway's is of no use.", docs: []string{gateway, theirs, strings.Replace(granted, "namespace: infra", "namespace: shop", 1)}, want: want{Wanted: true}},
		"Beside":    {reason: "Who may not takes nothing from who may, and adds nothing.", docs: []string{gateway, identityOf("b", "gw", "http"), strings.Replace(theirs, "{name: other}", "{name: web, identity: Headers}", 1)}, want: found},
		"GoneOf":    {reason: "A Gateway that is gone has no listeners.", docs: []string{gateway, identityOf("a", "gw", "http")}, gone: gateway, want: want{Wanted: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			for _, d := range tc.docs {
				apply(t, s, false, d)
			}
			if tc.gone != "" {
				apply(t, s, true, tc.gone)
			}
			got := want{}
			if got.Listeners, got.Wanted = s.Snapshot().IdentityListeners(gw); len(got.Listeners) == 0 {
				got.Listeners = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if told := s.Snapshot().GatewayDigest(gw) != ""; told != tc.want.Wanted {
				t.Errorf("%s\nEnvoy Gateway hears of it: %t", tc.reason, told)
			}
		})
	}
}
