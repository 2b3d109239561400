//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestEnvoyAcceptsPolicies generates random policies, some of which the schema accepts. For each
// accepted rule either Envoy accepts the routes, or the rule reports a problem. A Deny never denies
// less than its match describes.
func TestEnvoyAcceptsPolicies(t *testing.T) {
	t.Parallel()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := apiserver.Program(t.Context(), root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		t.Fatal(err)
	}
	const wanted, tried, seed = 1000, 20000, 7
	api := policySchema(t, root)
	g := generator{rand.New(rand.NewPCG(seed, seed))}
	var policies []object
	n := 0
	for ; len(policies) < wanted && n < tried; n++ {
		p := g.policy(len(policies))
		if api.accepts(t, p) {
			policies = append(policies, p)
		}
	}
	t.Logf("the schema accepts %d of %d policies", len(policies), n)
	if len(policies) < wanted {
		t.Fatalf("too few, want %d", wanted)
	}

	objs := slices.Clone(policies)
	var routes []*routev3.Route
	for i := range policies {
		name := fmt.Sprintf("app-%d", i)
		objs = append(objs, object{
			"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": object{"namespace": "default", "name": name},
			"spec": object{"parentRefs": []any{object{"name": "gw"}}},
		})
		routes = append(routes, egRoute("httproute/default/"+name+"/rule/0/match/0/www_example_com", prefix("/"), to(rule0)))
	}
	resources := policed()
	resources.Routes[0].VirtualHosts[0].Routes = routes
	s := storeOf(t, objs).Snapshot()
	out, _ := Translate(s, testSource, resources)

	routesByName := map[string]*routev3.Route{}
	for _, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
		routesByName[r.GetName()] = r
	}
	problems := 0
	for i, p := range policies {
		rule := onlyRule(t, s, i)
		if rule.Problem != "" {
			if problems++; rule.Deny || means(p) {
				t.Errorf("a Deny is lost: %s\n%v", rule.Problem, p["spec"])
			}
			continue
		}
		matches := list(list(p, "spec", "rules")[0], "matches")
		for j := range max(len(matches), 1) {
			r := routesByName[fmt.Sprintf("%sdefault/p-%d/a/%d/%s", policyPrefix, i, firstOf(rule, j), routes[i].GetName())]
			switch {
			case r == nil:
				t.Errorf("matches[%d] has no route, and no problem explains why: %v", j, p["spec"])
			case !means(p):
			case r.GetDirectResponse().GetStatus() != 403:
				t.Errorf("matches[%d] of a Deny does not deny: %v\n%v", j, p["spec"], r)
			case j < len(matches) && !meets(r.GetMatch(), matches[j]):
				t.Errorf("matches[%d] denies less: %v\n%v", j, p["spec"], r.GetMatch())
			}
		}
	}
	t.Logf("%d policies have a problem", problems)
	b := &staticConfig{t: t, out: &bootstrapv3.Bootstrap_StaticResources{}, runtime: map[string]any{"re2.max_program_size.error_level": 4294967295}}
	b.add("policies", resources, out)
	b.validate(envoy)
}

// firstOf returns the index of the first match that shares a route with a match.
func firstOf(rule *ir.PolicyRule, match int) int {
	first := 0
	for _, a := range parse.Alternatives(rule) {
		if a.First <= match {
			first = a.First
		}
	}
	return first
}

func onlyRule(t *testing.T, s *ir.Snapshot, i int) *ir.PolicyRule {
	t.Helper()
	for p := range s.Policies().All() {
		if p.Name == nn("default", fmt.Sprintf("p-%d", i)) {
			return p.Rules[0]
		}
	}
	t.Fatalf("policy %d is not in the snapshot", i)
	return nil
}

// means reports whether a policy states a Deny.
func means(p object) bool {
	return slices.ContainsFunc(list(list(p, "spec", "rules")[0], "actions"), func(a object) bool { return a["type"] == "Deny" })
}

// meets reports whether a request that fulfils a match of a policy also fulfils the route match
// that was made of it. Conditions that need a tailnet to evaluate are omitted.
func meets(m *routev3.RouteMatch, match object) bool {
	request := map[string]string{":path": "/", ":method": "GET"}
	if p, ok := match["path"].(object); ok {
		request[":path"] = sampleOf(p)
	}
	if v, ok := match["method"].(string); ok {
		request[":method"] = v
	}
	for _, h := range list(match, "headers") {
		name, _ := h["name"].(string)
		request[strings.ToLower(name)] = sampleOf(h)
	}
	for _, h := range m.GetHeaders() {
		value := request[h.GetName()]
		if re := h.GetStringMatch().GetSafeRegex(); re != nil {
			e := regexp.MustCompile(re.GetRegex())
			e.Longest()
			if at := e.FindStringIndex(value); at == nil || at[0] > 0 || at[1] < len(value) {
				return false
			}
		} else if h.GetStringMatch().GetExact() != value {
			return false
		}
	}
	return true
}

// sampleOf returns a value that fulfils a condition.
func sampleOf(c object) string {
	v, _ := c["value"].(string)
	if c["type"] == "RegularExpression" {
		return expressions()[v]
	}
	return v
}

// expressions returns regular expressions, each with a value that it matches. Some do not compile
// in Envoy, or do not compile at all.
func expressions() map[string]string {
	return map[string]string{
		`/a.*`: "/abc", `\Q/x`: "/x", `/\Qa.b\E`: "/a.b", `(?i)/A`: "/a", `/[[:word:]]+`: "/a_1", `^/a$`: "/a", `(?P<n>/a)`: "/a", `/a|/b`: "/b", `(`: "(", `/a)|(?:/b`: "/b",
		`/\pL{1000}`: "/" + strings.Repeat("a", 1000), `\C`: "a", `/\p{Greek}`: "/α", `~a`: "~a", ``: "", `a{2,1}`: "aa", `/(?:\pL\pN){900}`: "/" + strings.Repeat("a1", 900),
		`.*`: "/anything", `\bfoo\b`: "foo", `(?<n>a)`: "a", `[^a]`: "b", "a\nb": "a\nb", `\x{10FFFF}`: "\U0010FFFF", `\p{Kawi}`: "𑼀",
	}
}

// A generator builds policies, many of which are invalid.
type generator struct{ *rand.Rand }

func (g generator) of(vs ...any) any { return vs[g.IntN(len(vs))] }

func (g generator) expression() any {
	var all []any
	for e := range expressions() {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return g.of(all...)
}

func (g generator) policy(i int) object {
	r := object{"name": "a", "priority": int64(g.IntN(1001)), "actions": g.actions()}
	var ms []any
	for range g.IntN(4) {
		ms = append(ms, g.match())
	}
	if len(ms) > 0 {
		r["matches"] = ms
	}
	return object{
		"apiVersion": oursGroup + "/v1alpha1", "kind": "TailscaleRoutePolicy", "metadata": object{"namespace": "default", "name": fmt.Sprintf("p-%d", i)},
		"spec": object{"targetRefs": []any{object{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": fmt.Sprintf("app-%d", i)}}, "rules": []any{r}},
	}
}

func (g generator) match() object {
	m := object{}
	if g.IntN(2) == 0 {
		kind := g.of("Exact", "PathPrefix", "RegularExpression")
		value := g.of("/", "/a", "/a/", "/a b", "/a%2fb", "/é", "/~x", "/a;b", "/a?b", "/a.b", `/\Qa`, "/a+(b)", "/[", "/a\tb", "/a\nb", "/\x00", "/"+strings.Repeat("a", 1023))
		if kind == "RegularExpression" {
			value = g.expression()
		}
		m["path"] = object{"type": kind, "value": value}
	}
	if g.IntN(3) == 0 {
		m["method"] = g.of("GET", "POST", "OPTIONS", "CONNECT", "get")
	}
	var hs []any
	for n := range g.IntN(3) {
		h := object{"name": g.of(fmt.Sprintf("X-%d", n), "host", "content-type", "x_y", "!#$", "a b"), "value": g.of("yes", "~[", "~a.*", "=x", "*x", "a=b", " a", "%REQ(a)%", `\Q`, "é", "a\nb", strings.Repeat("v", 4096))}
		if g.IntN(2) == 0 {
			h["type"], h["value"] = "RegularExpression", g.expression()
		}
		hs = append(hs, h)
	}
	if len(hs) > 0 {
		m["headers"] = hs
	}
	if g.IntN(3) == 0 {
		d := object{"addresses": []any{g.of("100.64.0.0/10", "100.64.0.5", "fd7a:115c:a1e0::/48", "::ffff:100.64.0.1", "100.64.0.1/33", "0.0.0.0/0", "::/0", "100.64.0.9/10", "fe80::1%eth0", "laptop")}}
		if g.IntN(3) == 0 {
			d["tailnet"], d["tags"] = "corp", []any{"tag:a"}
		}
		m["tailnetDevice"] = d
	}
	return m
}

func (g generator) actions() []any {
	if g.IntN(2) == 0 {
		return []any{object{"type": "Deny"}}
	}
	change := func() object {
		header := object{"name": g.of("X", "x-a", "Host", ":path", "a b", "Content-Length"), "value": g.of("a", "%REQ(x)%", "%", "a\r\nb", "é", "{{x}}", strings.Repeat("v", 4096))}
		return object{g.of("set", "add").(string): []any{header}, "remove": []any{g.of("Y", "host", "a b", ":authority")}}
	}
	all := []any{
		object{"type": "Redirect", "redirect": object{
			"scheme": g.of("http", "https", "ftp"), "hostname": g.of("a.example.com", "A", "a b", "*.example.com"), "port": g.of(int64(1), int64(65535), int64(0)),
			"path": g.of("/", "/a%20b", "/%REQ(a)%", "/a\nb", "/{x}", "a"), "statusCode": g.of(int64(301), int64(302), int64(307)),
		}},
		object{"type": "Route", "route": object{"backendRefs": []any{object{"name": "web", "port": int64(80), "weight": g.of(int64(0), int64(1), int64(1000000))}, object{"name": "db", "port": int64(81)}}}},
		object{"type": "Route", "route": object{"rule": object{"name": "other", "sectionName": "first"}}},
		object{"type": "RequestHeaderModifier", "requestHeaderModifier": change()},
		object{"type": "ResponseHeaderModifier", "responseHeaderModifier": change()},
		object{"type": "Timeouts", "timeouts": object{"request": g.of("0s", "1ms", "99999h", "1h1m1s1ms", "1d", "-1s")}},
		object{"type": "RateLimit", "rateLimit": object{"requests": g.of(int64(0), int64(1), int64(1000000)), "unit": g.of("Second", "Minute", "Hour", "Day")}},
		object{"type": "BackendTLS", "backendTLS": object{"clientCertificateRef": object{"name": "client"}}},
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+g.IntN(3)]
}

// A policyAPI validates TailscaleRoutePolicies as an API server does.
type policyAPI struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *schemacel.Validator
}

func policySchema(t *testing.T, root string) *policyAPI {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, charts.ExtensionCRDs, "gateway.tailscale.com_tailscaleroutepolicies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd, internal := &extv1.CustomResourceDefinition{}, &apiextensions.JSONSchemaProps{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		t.Fatal(err)
	}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	out := &policyAPI{}
	if out.structural, err = schema.NewStructural(internal); err != nil {
		t.Fatal(err)
	}
	if out.schema, _, err = validation.NewSchemaValidator(internal); err != nil {
		t.Fatal(err)
	}
	out.rules = schemacel.NewValidator(out.structural, true, cel.PerCallLimit)
	return out
}

// accepts reports whether the schema accepts an object, and fills in its defaults.
func (a *policyAPI) accepts(t *testing.T, o object) bool {
	t.Helper()
	resource := runtime.DeepCopyJSON(o)
	defaulting.Default(resource, a.structural)
	errs := append(validation.ValidateCustomResource(nil, resource, a.schema), listtype.ValidateListSetsAndMaps(nil, a.structural, resource)...)
	more, _ := a.rules.Validate(t.Context(), nil, a.structural, resource, nil, cel.RuntimeCELCostBudget)
	if len(errs)+len(more) > 0 {
		return false
	}
	o["spec"] = resource["spec"]
	return true
}
