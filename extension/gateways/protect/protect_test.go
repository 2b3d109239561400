// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// parseName parses NAMESPACE/NAME.
func parseName(s string) types.NamespacedName {
	ns, name, _ := strings.Cut(s, "/")
	return types.NamespacedName{Namespace: ns, Name: name}
}

// A world has a Gateway shop/web of class eg with the listeners http, https and db, the ListenerSets
// team/extra and team/more with a listener each, and a route for each of these, as newWorld shows.
type world struct {
	facts     Facts
	routes    []*routes.Route
	listeners []routes.Listener
}

func newWorld() *world {
	w := &world{facts: Facts{
		Gateway: &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"tier": "public"}}},
		Sets: []*gwapiv1.ListenerSet{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "extra", Labels: map[string]string{"tier": "extra"}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "more"}},
		},
		Permitted: func(_ ir.RouteKey, b ir.BackendRef) bool { return b.Name != "refused" },
	}}
	w.facts.Gateway.Spec.GatewayClassName = "eg"
	http := w.listener("Gateway", "shop/web", "http", 80, gwapiv1.HTTPProtocolType)
	https := w.listener("Gateway", "shop/web", "https", 443, gwapiv1.HTTPSProtocolType)
	db := w.listener("Gateway", "shop/web", "db", 5432, gwapiv1.TCPProtocolType)
	extra := w.listener("ListenerSet", "team/extra", "http", 8080, gwapiv1.HTTPProtocolType)
	more := w.listener("ListenerSet", "team/more", "more", 8443, gwapiv1.HTTPSProtocolType)

	w.route("GRPCRoute", "shop/app", https, "=rpc")
	w.route("HTTPRoute", "lab/app", https, "=lab").Labels = map[string]string{"tier": "app"}
	w.route("HTTPRoute", "shop/app", http, "open=app", "closed=api").Labels = map[string]string{"tier": "app"}
	w.route("HTTPRoute", "team/app", extra, "=extra").Labels = map[string]string{"tier": "app"}
	w.route("HTTPRoute", "team/more", more, "=more")
	w.route("TCPRoute", "shop/db", db, "=db")
	return w
}

// listener adds a listener.
func (w *world) listener(kind, parent, name string, port int32, protocol gwapiv1.ProtocolType) routes.Listener {
	l := routes.Listener{Parent: routes.KeyOf(kind, parseName(parent)), Name: gwapiv1.SectionName(name), Port: port, Protocol: protocol}
	w.listeners = append(w.listeners, l)
	return l
}

// route adds a route with rules NAME=SERVICE, which reach a Service of the route's namespace at two
// ports, and what is no permitted Service.
func (w *world) route(kind, name string, l routes.Listener, rules ...string) *routes.Route {
	n := parseName(name)
	r := &routes.Route{Route: &ir.Route{Key: ir.RouteKey{Kind: ir.RouteKinds[kind], NamespacedName: n}}, Kind: kind, Listeners: []routes.Listener{l}}
	for _, rule := range rules {
		section, service, _ := strings.Cut(rule, "=")
		backend := func(kind ir.BackendKind, service string, port int32) ir.BackendRef {
			return ir.BackendRef{Kind: kind, NamespacedName: types.NamespacedName{Namespace: n.Namespace, Name: service}, Port: port}
		}
		r.Rules = append(r.Rules, ir.Rule{Name: section, Backends: []ir.BackendRef{
			backend(ir.BackendService, service, 80), backend(ir.BackendService, service, 81),
			backend(ir.BackendService, "refused", 80), backend(ir.BackendOther, "other", 80), backend(ir.BackendService, "portless", 0),
		}})
	}
	w.routes = append(w.routes, r)
	return r
}

// find returns a route.
func (w *world) find(kind, name string) *routes.Route {
	return w.routes[slices.IndexFunc(w.routes, func(r *routes.Route) bool { return r.Kind == kind && r.Key.NamespacedName == parseName(name) })]
}

// protectors returns what protects Services, by NAMESPACE/NAME.
func (w *world) protectors() map[string]string {
	out := map[string]string{}
	for n, protector := range w.facts.Protectors(w.routes, w.listeners) {
		out[n.String()] = protector
	}
	return out
}

// protected returns the Services NAMESPACE/NAME with a protector.
func protected(protector string, services ...string) map[string]string {
	out := map[string]string{}
	for _, s := range services {
		out[s] = protector
	}
	return out
}

// grant returns a ReferenceGrant in a namespace for policies of a kind in namespace edge, to the objects
// of a kind. An empty name is for all objects.
func grant(namespace, policy, kind, name string) refgrant.Grants {
	target := gwapiv1beta1.ReferenceGrantTo{Group: gwapiv1.GroupName, Kind: gwapiv1.Kind(kind)}
	if name != "" {
		target.Name = ptr.To(gwapiv1.ObjectName(name))
	}
	return refgrant.Grants{{Namespace: namespace, Name: "policies"}: {
		From: []gwapiv1beta1.ReferenceGrantFrom{{Group: "gateway.envoyproxy.io", Kind: gwapiv1.Kind(policy), Namespace: "edge"}},
		To:   []gwapiv1beta1.ReferenceGrantTo{target},
	}}
}

// ref returns a reference to a target of Gateway API. An empty section is for the whole object.
func ref(kind, name, section string) string {
	out := "group: gateway.networking.k8s.io, kind: " + kind + ", name: " + name
	if section != "" {
		out += ", sectionName: " + section
	}
	return "{" + out + "}"
}

// refs returns the spec of a policy with targets.
func refs(targets ...string) string { return "{targetRefs: [" + strings.Join(targets, ", ") + "]}" }

// everything are all Services behind routes of the world.
var everything = []string{"lab/lab", "shop/app", "shop/api", "shop/rpc", "shop/db", "team/extra", "team/more"}

// TestTargets checks which Services a policy protects by its references.
func TestTargets(t *testing.T) {
	const kind, policy = "SecurityPolicy", "SecurityPolicy shop/jwt"
	cases := map[string]struct {
		reason string
		guard  *Guard
		want   map[string]string
	}{
		"None":               {reason: "A policy without targets protects nothing.", guard: guardOf(t, kind, "shop", "{}")},
		"Route":              {reason: "A policy of a route protects the Services of all its rules, and no other route of that name.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "app", ""))), want: protected(policy, "shop/app", "shop/api")},
		"OldForm":            {reason: "So does one with the deprecated field.", guard: guardOf(t, kind, "shop", "{targetRef: "+ref("HTTPRoute", "app", "")+"}"), want: protected(policy, "shop/app", "shop/api")},
		"RouteOfOtherKind":   {reason: "The kind distinguishes routes of one name.", guard: guardOf(t, kind, "shop", refs(ref("GRPCRoute", "app", ""))), want: protected(policy, "shop/rpc")},
		"SeveralRoutes":      {reason: "Each target counts, one that is named twice as well.", guard: guardOf(t, kind, "shop", refs(ref("TCPRoute", "db", ""), ref("GRPCRoute", "app", ""), ref("GRPCRoute", "app", ""))), want: protected(policy, "shop/db", "shop/rpc")},
		"Rule":               {reason: "A policy of a rule protects the rule's Services.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "app", "closed"))), want: protected(policy, "shop/api")},
		"BothRules":          {reason: "So do those of several rules.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "app", "closed"), ref("HTTPRoute", "app", "open"))), want: protected(policy, "shop/api", "shop/app")},
		"RuleAndRoute":       {reason: "The whole route includes the rule.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "app", "closed"), ref("HTTPRoute", "app", ""))), want: protected(policy, "shop/api", "shop/app")},
		"UnknownRule":        {reason: "A rule that does not exist, or no longer, stands for the route.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "app", "clsoed"))), want: protected(policy, "shop/api", "shop/app")},
		"RuleOfUnnamedRules": {reason: "So does a rule of a route whose rules have no names.", guard: guardOf(t, kind, "shop", refs(ref("TCPRoute", "db", "closed"))), want: protected(policy, "shop/db")},
		"DeletedRoute":       {reason: "A route that does not exist has no Services.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "deleted", "")))},
		"NoName":             {reason: "A target without a name is no object.", guard: guardOf(t, kind, "shop", refs(ref("HTTPRoute", "''", "")))},
		"OtherNamespace":     {reason: "References are to objects of the policy's namespace: a policy of another one must not withdraw Services.", guard: guardOf(t, kind, "edge", refs(ref("HTTPRoute", "app", ""), ref("Gateway", "web", ""), ref("ListenerSet", "extra", "")))},
		"NameWithNamespace":  {reason: "A name cannot contain a namespace.", guard: guardOf(t, kind, "edge", refs(ref("HTTPRoute", "shop/app", ""), ref("Gateway", "shop/web", "")))},
		"Gateway":            {reason: "A policy of the Gateway protects all Services, those behind ListenerSets as well.", guard: guardOf(t, kind, "shop", refs(ref("Gateway", "web", ""))), want: protected(policy, everything...)},
		"OtherGateway":       {reason: "A policy of another Gateway does not apply.", guard: guardOf(t, kind, "shop", refs(ref("Gateway", "other", "")))},
		"Listener":           {reason: "A policy of a listener protects its Services, and not those of a ListenerSet's listener of that name.", guard: guardOf(t, kind, "shop", refs(ref("Gateway", "web", "http"))), want: protected(policy, "shop/app", "shop/api")},
		"UnknownListener":    {reason: "A listener that does not exist, or no longer, stands for the Gateway.", guard: guardOf(t, kind, "shop", refs(ref("Gateway", "web", "htpt"))), want: protected(policy, everything...)},
		"ListenerOfSet":      {reason: "A ListenerSet's listener is unknown to the Gateway.", guard: guardOf(t, kind, "shop", refs(ref("Gateway", "web", "more"))), want: protected(policy, everything...)},
		"ListenerSet":        {reason: "A policy of a ListenerSet protects its Services alone.", guard: guardOf(t, kind, "team", refs(ref("ListenerSet", "extra", ""))), want: protected("SecurityPolicy team/jwt", "team/extra")},
		"SetListener":        {reason: "So does one of its listener.", guard: guardOf(t, kind, "team", refs(ref("ListenerSet", "extra", "http"))), want: protected("SecurityPolicy team/jwt", "team/extra")},
		"UnknownSetListener": {reason: "A listener that the ListenerSet does not have stands for the ListenerSet, also if the Gateway has it.", guard: guardOf(t, kind, "team", refs(ref("ListenerSet", "extra", "db"))), want: protected("SecurityPolicy team/jwt", "team/extra")},
		"DeletedSet":         {reason: "A ListenerSet that does not exist has no Services.", guard: guardOf(t, kind, "team", refs(ref("ListenerSet", "deleted", "")))},
		"RouteOfSet":         {reason: "A policy of a route may be of a route of a ListenerSet.", guard: guardOf(t, kind, "team", refs(ref("HTTPRoute", "app", ""))), want: protected("SecurityPolicy team/jwt", "team/extra")},
		"UnknownKind":        {reason: "A kind that is unknown may be any object of the policy's namespace, and of no other.", guard: guardOf(t, kind, "lab", "{targetRefs: [{group: example.com, kind: HTTPRoute, name: a}]}"), want: protected("SecurityPolicy lab/jwt", "lab/lab")},
		"UnknownKindOfSet":   {reason: "Also a ListenerSet, but not its Gateway.", guard: guardOf(t, kind, "team", "{targetRefs: [{group: gateway.networking.k8s.io, kind: XListenerSet, name: a}]}"), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"UnknownKindOfAll":   {reason: "In the Gateway's namespace it may be the Gateway.", guard: guardOf(t, kind, "shop", "{targetRefs: [{kind: Service, name: a}]}"), want: protected(policy, everything...)},
		"UnknownKindAndRule": {reason: "An unknown target makes the whole route of a rule protected.", guard: guardOf(t, kind, "lab", "{targetRefs: ["+ref("HTTPRoute", "app", "")+", {kind: Service, name: a}]}"), want: protected("SecurityPolicy lab/jwt", "lab/lab")},
		"UnknownElsewhere":   {reason: "A namespace without objects of the Gateway has none.", guard: guardOf(t, kind, "edge", "{targetRefs: [{kind: Service, name: a}]}")},
		"Class":              {reason: "A patch of the class is for all its Gateways.", guard: guardOf(t, "EnvoyPatchPolicy", "edge", "{targetRef: "+ref("GatewayClass", "eg", "")+"}"), want: protected("EnvoyPatchPolicy edge/jwt", everything...)},
		"OtherClass":         {reason: "A patch of another class does not apply.", guard: guardOf(t, "EnvoyPatchPolicy", "shop", "{targetRef: "+ref("GatewayClass", "web", "")+"}")},
		"GatewayLikeClass":   {reason: "A Gateway with the name of the class is no class.", guard: guardOf(t, "EnvoyPatchPolicy", "shop", "{targetRef: "+ref("Gateway", "eg", "")+"}")},
		"Ours":               {reason: "A TailscaleRoutePolicy protects in the same way.", guard: routePolicyOf(t, "shop", "["+ref("HTTPRoute", "app", "closed")+", "+ref("Gateway", "web", "https")+"]"), want: protected("TailscaleRoutePolicy shop/staff", "shop/api", "shop/rpc", "lab/lab")},
		"OursElsewhere":      {reason: "It does so in its namespace alone.", guard: routePolicyOf(t, "edge", "["+ref("HTTPRoute", "app", "")+", "+ref("Gateway", "web", "")+"]")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.facts.Guards = []*Guard{tc.guard}
			if diff := cmp.Diff(tc.want, w.protectors(), ignoreEmpty); diff != "" {
				t.Errorf("%s\nProtectors(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ignoreEmpty makes no map equal to an empty one.
var ignoreEmpty = cmp.FilterValues(func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Comparer(func(_, _ map[string]string) bool { return true }))

// TestSelectors checks which Services a policy protects by labels, in other namespaces only with
// their permission.
func TestSelectors(t *testing.T) {
	const (
		kind, policy = "SecurityPolicy", "SecurityPolicy edge/jwt"
		app          = "matchLabels: {tier: app}"
		all          = "namespaces: {from: All}"
	)
	selectors := func(s ...string) string { return "{targetSelectors: [{" + strings.Join(s, "}, {") + "}]}" }
	cases := map[string]struct {
		reason string
		guard  *Guard
		grants refgrant.Grants
		want   map[string]string
	}{
		"Labels":           {reason: "A selector reaches routes of the policy's namespace with the labels.", guard: guardOf(t, kind, "shop", selectors("kind: HTTPRoute, "+app)), want: protected("SecurityPolicy shop/jwt", "shop/app", "shop/api")},
		"OtherLabels":      {reason: "Routes with other labels are not selected.", guard: guardOf(t, kind, "shop", selectors("kind: HTTPRoute, matchLabels: {tier: web}"))},
		"OtherKind":        {reason: "Nor are routes of another kind.", guard: guardOf(t, kind, "shop", selectors("kind: GRPCRoute, "+app))},
		"NoLabels":         {reason: "A selector without labels selects all routes of its kind.", guard: guardOf(t, kind, "team", selectors("kind: HTTPRoute")), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"Expressions":      {reason: "A selector may have expressions, which count with the labels.", guard: guardOf(t, kind, "team", selectors("kind: HTTPRoute, matchExpressions: [{key: tier, operator: DoesNotExist}]")), want: protected("SecurityPolicy team/jwt", "team/more")},
		"Both":             {reason: "Labels and expressions must both match.", guard: guardOf(t, kind, "team", selectors("kind: HTTPRoute, "+app+", matchExpressions: [{key: tier, operator: DoesNotExist}]"))},
		"Second":           {reason: "Any selector suffices.", guard: guardOf(t, kind, "shop", selectors("kind: HTTPRoute, matchLabels: {a: b}", "kind: TCPRoute")), want: protected("SecurityPolicy shop/jwt", "shop/db")},
		"RuleAndSelector":  {reason: "A selector of the whole route includes a rule of it.", guard: guardOf(t, kind, "shop", "{targetRefs: ["+ref("HTTPRoute", "app", "closed")+"], targetSelectors: [{kind: HTTPRoute, "+app+"}]}"), want: protected("SecurityPolicy shop/jwt", "shop/app", "shop/api")},
		"RuleBesides":      {reason: "A selector that does not match leaves a rule protected.", guard: guardOf(t, kind, "shop", "{targetRefs: ["+ref("HTTPRoute", "app", "closed")+"], targetSelectors: [{kind: HTTPRoute, matchLabels: {a: b}}]}"), want: protected("SecurityPolicy shop/jwt", "shop/api")},
		"Gateway":          {reason: "A selector may be of Gateways.", guard: guardOf(t, kind, "shop", selectors("kind: Gateway, matchLabels: {tier: public}")), want: protected("SecurityPolicy shop/jwt", everything...)},
		"OtherGateway":     {reason: "Of those with other labels it is not.", guard: guardOf(t, kind, "shop", selectors("kind: Gateway, matchLabels: {tier: app}"))},
		"ListenerSet":      {reason: "A selector may be of ListenerSets, by their labels.", guard: guardOf(t, kind, "team", selectors("kind: ListenerSet, matchLabels: {tier: extra}")), want: protected("SecurityPolicy team/jwt", "team/extra")},
		"BadOperator":      {reason: "A selector that cannot be read selects everything of its kind.", guard: guardOf(t, kind, "team", selectors("kind: HTTPRoute, matchExpressions: [{key: tier, operator: Likes}]")), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"BadLabel":         {reason: "So does one with a label that no object can have.", guard: guardOf(t, kind, "team", selectors("kind: HTTPRoute, matchLabels: {tier: '"+strings.Repeat("a", 64)+"'}")), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"BadElsewhere":     {reason: "But not in namespaces that did not permit it.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all+", matchExpressions: [{key: tier, operator: Likes}]"))},
		"UnknownKind":      {reason: "A selector of an unknown kind counts for the policy's namespace.", guard: guardOf(t, kind, "team", selectors("kind: XListenerSet, "+app)), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"UnknownGroup":     {reason: "So does one of an unknown group.", guard: guardOf(t, kind, "team", selectors("group: example.com, kind: HTTPRoute, matchLabels: {a: b}")), want: protected("SecurityPolicy team/jwt", "team/extra", "team/more")},
		"UnknownElsewhere": {reason: "It never counts for other namespaces, permitted or not.", guard: guardOf(t, kind, "edge", selectors("kind: XListenerSet, "+all)), grants: grant("team", kind, "HTTPRoute", "")},
		"Same":             {reason: "A selector without namespaces reaches no other one, permitted or not.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute")), grants: grant("team", kind, "HTTPRoute", "")},
		"SameByName":       {reason: "Nor does one with the namespaces Same.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, namespaces: {from: Same}")), grants: grant("team", kind, "HTTPRoute", "")},
		"SameGateway":      {reason: "Nor does one of Gateways.", guard: guardOf(t, kind, "edge", selectors("kind: Gateway")), grants: grant("shop", kind, "Gateway", "")},
		"Unset":            {reason: "Nor does one with namespaces that are not set.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, namespaces: {}")), grants: grant("team", kind, "HTTPRoute", "")},
		"Ungranted":        {reason: "Other namespaces must permit it: a tenant could otherwise withdraw the Services of all.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all, "kind: Gateway, "+all, "kind: ListenerSet, "+all))},
		"Granted":          {reason: "With permission it applies in the namespace that gave it.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all)), grants: grant("team", kind, "HTTPRoute", ""), want: protected(policy, "team/extra", "team/more")},
		"GrantedLabels":    {reason: "To the objects with the labels.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+app+", "+all)), grants: grant("team", kind, "HTTPRoute", ""), want: protected(policy, "team/extra")},
		"GrantedName":      {reason: "Permission may be for one object.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all)), grants: grant("team", kind, "HTTPRoute", "more"), want: protected(policy, "team/more")},
		"GrantedKind":      {reason: "Permission for another kind is none.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all)), grants: grant("team", kind, "Gateway", "")},
		"GrantedPolicy":    {reason: "Permission for another kind of policies is none.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all)), grants: grant("team", "BackendTrafficPolicy", "HTTPRoute", "")},
		"GrantedTo":        {reason: "Permission for policies of another namespace is none.", guard: guardOf(t, kind, "lab", selectors("kind: TCPRoute, "+all)), grants: grant("shop", kind, "TCPRoute", "")},
		"OwnGrant":         {reason: "A policy's namespace cannot give permission for others.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, "+all)), grants: grant("edge", kind, "HTTPRoute", "")},
		"NewFrom":          {reason: "Namespaces that are selected in a way that is newer than this count as all.", guard: guardOf(t, kind, "edge", selectors("kind: HTTPRoute, namespaces: {from: Selector}")), grants: grant("team", kind, "HTTPRoute", ""), want: protected(policy, "team/extra", "team/more")},
		"OwnAndGranted":    {reason: "The policy's own namespace needs no permission.", guard: guardOf(t, kind, "lab", selectors("kind: HTTPRoute, "+all)), want: protected("SecurityPolicy lab/jwt", "lab/lab")},
		"SecondElsewhere":  {reason: "Any selector may reach other namespaces, and only it does.", guard: guardOf(t, kind, "edge", selectors("kind: TCPRoute", "kind: HTTPRoute, "+app+", "+all)), grants: grant("team", kind, "HTTPRoute", ""), want: protected(policy, "team/extra")},
		"GrantedGateway":   {reason: "A Gateway may permit policies of other namespaces.", guard: guardOf(t, kind, "edge", selectors("kind: Gateway, "+all)), grants: grant("shop", kind, "Gateway", "web"), want: protected(policy, everything...)},
		"GrantedSet":       {reason: "So may a ListenerSet.", guard: guardOf(t, kind, "edge", selectors("kind: ListenerSet, "+all)), grants: grant("team", kind, "ListenerSet", "more"), want: protected(policy, "team/more")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.facts.Guards, w.facts.Grants = []*Guard{tc.guard}, tc.grants
			if diff := cmp.Diff(tc.want, w.protectors(), ignoreEmpty); diff != "" {
				t.Errorf("%s\nProtectors(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProtectors checks what protects Services besides policies, what has precedence, and that objects
// that are gone protect nothing.
func TestProtectors(t *testing.T) {
	const certificates = "tls.frontend of Gateway shop/web"
	validation := gwapiv1.TLSConfig{Validation: &gwapiv1.FrontendTLSValidation{}}
	frontend := func(def gwapiv1.TLSConfig, ports ...gwapiv1.TLSPortConfig) *gwapiv1.GatewayTLSConfig {
		return &gwapiv1.GatewayTLSConfig{Frontend: &gwapiv1.FrontendTLSConfig{Default: def, PerPort: ports}}
	}
	cases := map[string]struct {
		reason string
		change func(*world)
		want   map[string]string
	}{
		"Nothing":      {reason: "Without policies, certificates and filters, nothing is protected.", change: func(*world) {}},
		"Backend":      {reason: "Certificates for backends are not those of clients.", change: func(w *world) { w.facts.Gateway.Spec.TLS = &gwapiv1.GatewayTLSConfig{} }},
		"NoValidation": {reason: "Nor does a frontend without validation ask for any.", change: func(w *world) { w.facts.Gateway.Spec.TLS = frontend(gwapiv1.TLSConfig{}) }},
		"Certificates": {reason: "Certificates of clients protect what HTTPS listeners lead to, those of ListenerSets as well.", change: func(w *world) { w.facts.Gateway.Spec.TLS = frontend(validation) }, want: protected(certificates, "lab/lab", "shop/rpc", "team/more")},
		"Port": {reason: "They may be required at a port.", change: func(w *world) {
			w.facts.Gateway.Spec.TLS = frontend(gwapiv1.TLSConfig{}, gwapiv1.TLSPortConfig{Port: 1}, gwapiv1.TLSPortConfig{Port: 443, TLS: validation})
		}, want: protected(certificates, "lab/lab", "shop/rpc")},
		"PortWithout": {reason: "A port may be an exception.", change: func(w *world) { w.facts.Gateway.Spec.TLS = frontend(validation, gwapiv1.TLSPortConfig{Port: 443}) }, want: protected(certificates, "team/more")},
		"PortOfHTTP": {reason: "A port without TLS asks for none.", change: func(w *world) {
			w.facts.Gateway.Spec.TLS = frontend(gwapiv1.TLSConfig{}, gwapiv1.TLSPortConfig{Port: 80, TLS: validation})
		}},
		"AnyListener": {reason: "One listener of a route suffices.", change: func(w *world) {
			w.facts.Gateway.Spec.TLS = frontend(validation)
			r := w.find("HTTPRoute", "shop/app")
			r.Listeners = append(r.Listeners, w.listeners[1])
		}, want: protected(certificates, "lab/lab", "shop/rpc", "team/more", "shop/app", "shop/api")},
		"Filter": {reason: "A filter protects the Services of its rule.", change: func(w *world) { w.find("HTTPRoute", "shop/app").Filters = map[int]string{1: "ExternalAuth"} }, want: protected("Filter ExternalAuth of HTTPRoute shop/app", "shop/api")},
		"FilterOfNoRule": {reason: "A filter of a rule that the route does not have protects nothing.", change: func(w *world) {
			w.find("HTTPRoute", "shop/app").Filters = map[int]string{2: "ExternalAuth", -1: "ExternalAuth"}
		}},
		"PolicyFirst": {reason: "Policies come before certificates, and these before filters.", change: func(w *world) {
			w.facts.Gateway.Spec.TLS = frontend(validation)
			w.find("GRPCRoute", "shop/app").Filters = map[int]string{0: "ExtensionRef"}
			w.find("HTTPRoute", "lab/app").Filters = map[int]string{0: "ExtensionRef"}
			w.find("TCPRoute", "shop/db").Filters = map[int]string{0: "ExtensionRef"}
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "lab", refs(ref("HTTPRoute", "app", "")))}
		}, want: map[string]string{"lab/lab": "SecurityPolicy lab/jwt", "shop/rpc": certificates, "team/more": certificates, "shop/db": "Filter ExtensionRef of TCPRoute shop/db"}},
		"KindFirst": {reason: "Policies have precedence by kind before namespace, in whatever order they come.", change: func(w *world) {
			w.facts.Guards = []*Guard{
				routePolicyOf(t, "shop", "["+ref("TCPRoute", "db", "")+"]"),
				guardOf(t, "SecurityPolicy", "shop", refs(ref("TCPRoute", "db", ""))),
				guardOf(t, "EnvoyPatchPolicy", "zoo", "{targetRef: "+ref("GatewayClass", "eg", "")+"}"),
			}
		}, want: protected("EnvoyPatchPolicy zoo/jwt", everything...)},
		"NamespaceFirst": {reason: "Of one kind they have precedence by namespace.", change: func(w *world) {
			w.facts.Guards = []*Guard{
				guardOf(t, "EnvoyPatchPolicy", "zoo", "{targetRef: "+ref("GatewayClass", "eg", "")+"}"),
				guardOf(t, "EnvoyPatchPolicy", "edge", "{targetRef: "+ref("GatewayClass", "eg", "")+"}"),
			}
		}, want: protected("EnvoyPatchPolicy edge/jwt", everything...)},
		"Shared": {reason: "A Service of a protected route is protected, whatever other routes lead to it.", change: func(w *world) {
			w.route("HTTPRoute", "shop/open", w.listeners[0], "=db")
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("TCPRoute", "db", "")))}
		}, want: protected("SecurityPolicy shop/jwt", "shop/db")},
		"UnnamedRule": {reason: "A policy of a route is not one of the rules without a name.", change: func(w *world) {
			w.route("HTTPRoute", "lab/mixed", w.listeners[0], "=first", "a=second")
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "lab", refs(ref("HTTPRoute", "mixed", "")))}
		}, want: protected("SecurityPolicy lab/jwt", "lab/first", "lab/second")},
		"SameRule": {reason: "Rules of one name count together.", change: func(w *world) {
			w.route("HTTPRoute", "lab/twice", w.listeners[0], "a=first", "a=second", "b=third")
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "lab", refs(ref("HTTPRoute", "twice", "a")))}
		}, want: protected("SecurityPolicy lab/jwt", "lab/first", "lab/second")},
		"ListenerAndRoute": {reason: "A policy may apply to a listener and to a route elsewhere: the listener's count by it, the route's by its own target.", change: func(w *world) {
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", "db"), ref("HTTPRoute", "app", "open")))}
		}, want: protected("SecurityPolicy shop/jwt", "shop/db", "shop/app")},
		"SecondListener": {reason: "A policy of a listener protects routes that are attached to others as well.", change: func(w *world) {
			r := w.find("HTTPRoute", "shop/app")
			r.Listeners = append(r.Listeners, w.listeners[2])
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", "db")))}
		}, want: protected("SecurityPolicy shop/jwt", "shop/db", "shop/app", "shop/api")},
		"NoListeners": {reason: "A route without a listener is protected by the policies that name it alone.", change: func(w *world) {
			w.find("TCPRoute", "shop/db").Listeners, w.find("GRPCRoute", "shop/app").Listeners = nil, nil
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", "https"), ref("TCPRoute", "db", "")))}
		}, want: protected("SecurityPolicy shop/jwt", "shop/db", "lab/lab")},
		"GatewayGone": {reason: "A Gateway that does not exist has no policies and asks for no certificates; those of routes remain.", change: func(w *world) {
			w.facts.Gateway = nil
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", ""), ref("TCPRoute", "db", ""))), guardOf(t, "EnvoyPatchPolicy", "edge", "{targetRef: "+ref("GatewayClass", "eg", "")+"}")}
		}, want: protected("SecurityPolicy shop/jwt", "shop/db")},
		"SetGone": {reason: "Nor has a ListenerSet that does not exist.", change: func(w *world) {
			w.facts.Sets = w.facts.Sets[1:]
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "team", refs(ref("ListenerSet", "extra", "")))}
		}},
		"RoutesGone": {reason: "Without routes there is nothing to protect.", change: func(w *world) {
			w.routes = nil
			w.facts.Gateway.Spec.TLS = frontend(validation)
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", "")))}
		}},
		"ListenersGone": {reason: "A Gateway without listeners has nothing behind them.", change: func(w *world) {
			w.listeners = nil
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("Gateway", "web", ""))), guardOf(t, "EnvoyPatchPolicy", "edge", "{targetRef: "+ref("GatewayClass", "eg", "")+"}")}
		}},
		"RulesGone": {reason: "A route without rules has no Services.", change: func(w *world) {
			w.find("TCPRoute", "shop/db").Rules = nil
			w.facts.Guards = []*Guard{guardOf(t, "SecurityPolicy", "shop", refs(ref("TCPRoute", "db", "")))}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.change(w)
			if diff := cmp.Diff(tc.want, w.protectors(), ignoreEmpty); diff != "" {
				t.Errorf("%s\nProtectors(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStable checks that what protects a Service does not change from one call to the next, and with it a
// report: each rule has another filter, and each policy another name.
func TestStable(t *testing.T) {
	w := newWorld()
	db := w.find("TCPRoute", "shop/db")
	db.Filters = map[int]string{}
	for i := range 16 {
		db.Rules = append(db.Rules, db.Rules[0])
		db.Filters[i] = "Filter" + strconv.Itoa(i)
	}
	want := w.protectors()
	if diff := cmp.Diff(protected("Filter Filter0 of TCPRoute shop/db", "shop/db"), want); diff != "" {
		t.Errorf("the first filter is reported: -want, +got:\n%s", diff)
	}
	for range 20 {
		if diff := cmp.Diff(want, w.protectors()); diff != "" {
			t.Fatalf("Protectors(...) changes: -first, +later:\n%s", diff)
		}
	}
}
