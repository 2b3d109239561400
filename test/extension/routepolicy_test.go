//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// fromTailnet is the listener that takes the PROXY protocol.
	fromTailnet = "http://127.0.0.1:8889/"

	// An operator of the example, and another device.
	operator, stranger = "100.64.0.7", "100.64.1.7"
)

// TestRoutePolicies checks that policies affect the requests that they match in a real Envoy, and
// no others.
func TestRoutePolicies(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironment(t)
	w.serve(t, "192.0.2.30:8000", http.HandlerFunc(returnPath))
	w.serve(t, "192.0.2.31:8000", respond("canary"))
	w.apply(t, "routepolicy.yaml")
	w.answers(t, "web.example.com/admin", "/admin ")
	w.answers(t, "plain.example.com/admin", "/admin ")

	w.create(t, exampleOf(t, "route-policy.yaml"))
	w.accepted(t, "web", map[string]string{"Gateway/default/gw": "True/Accepted"})

	t.Run("Denies", func(t *testing.T) {
		w.until(t, w.responds(query{path: "admin/users"}, "403"))
		w.until(t, w.responds(query{path: "admin?x=/"}, "403"))
		// All forms of the path are denied.
		for _, p := range []string{"x/../admin", "x/%2e%2e/admin", "%61dmin", "/admin", "./admin"} {
			w.until(t, w.responds(query{path: p}, "403"))
		}
		w.until(t, w.responds(query{path: "administration"}, "200 /administration "))
	})
	t.Run("RefusesPathParameters", func(t *testing.T) {
		for _, p := range []string{"admin;x", "admin;x/users", "admin%3bx", "admin%3Bx=1/users", "x/..;/admin", ";/admin", "x;y/z"} {
			w.until(t, w.responds(query{path: p}, "403"))
		}
		w.until(t, w.responds(query{path: "other?a=1;b=2"}, "200 /other "))
	})
	t.Run("IgnoresOtherRoutes", func(t *testing.T) {
		w.until(t, w.responds(query{host: "plain.example.com", path: "admin"}, "200 /admin "))
	})
	t.Run("Redirects", func(t *testing.T) {
		w.until(t, w.responds(query{path: "old?q=1"}, "301 http://web.example.com/new?q=1"))
		w.until(t, w.responds(query{path: "old/more"}, "200 /old/more "))
	})
	t.Run("Routes", func(t *testing.T) {
		w.until(t, w.responds(query{header: http.Header{"X-Canary": {"yes"}}}, "200 canary"))
		w.until(t, w.responds(query{header: http.Header{"X-Canary": {"no"}}}, "200 / "))
	})
	t.Run("TimesOut", func(t *testing.T) {
		w.until(t, w.responds(query{path: "reports/slow"}, "504"))
	})
	t.Run("LimitsRates", func(t *testing.T) { limitsRates(t, w) })
	t.Run("NamesRules", func(t *testing.T) { namesRules(t, w) })
	t.Run("MatchesDevices", func(t *testing.T) { matchesDevices(t, w) })
	t.Run("FindsDevices", func(t *testing.T) { findsDevices(t, w) })
	t.Run("TakesEffect", func(t *testing.T) { takesEffect(t, w) })
	t.Run("GRPC", func(t *testing.T) { deniesGRPC(t, w) })
	t.Run("PresentsCertificates", func(t *testing.T) { presentsCertificates(t, w) })
	t.Run("Conflicts", func(t *testing.T) { conflicts(t, w) })
	t.Run("Deleted", func(t *testing.T) {
		w.remove(t, policyNamed("web"))
		w.until(t, w.responds(query{path: "admin"}, "200 /admin "))
		w.until(t, w.responds(query{path: "old"}, "200 /old "))
	})
}

// returnPath responds with the request's path, and with the header of operators. A slow report
// never completes.
func returnPath(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/reports/slow" {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, r.URL.Path, " ", r.Header.Get("X-Operator")) // The client may have gone.
}

// limitsRates checks the rate limit of a rule's requests, and that other requests are not limited.
func limitsRates(t *testing.T, w *environment) {
	w.create(t, exampleOf(t, "route-policy-rate.yaml"))
	search := query{path: "search"}
	// The first denied request shows that the limit is in effect.
	w.until(t, w.responds(search, "429"))
	if err := w.responds(query{path: "other"}, "200 /other ")(within(t)); err != nil {
		t.Errorf("a request that the rule does not match is limited: %v", err)
	}
	w.remove(t, policyNamed("rate"))
	w.until(t, w.responds(search, "200 /search "))
}

// matchesDevices checks that devices match by the address from the proxies, and not by headers of
// the request.
func matchesDevices(t *testing.T, w *environment) {
	lies := http.Header{"X-Forwarded-For": {operator}, "X-Envoy-External-Address": {operator}, "Forwarded": {"for=" + operator}, "X-Operator": {"yes"}}
	w.until(t, w.responds(query{client: operator, path: "admin"}, "200 /admin yes"))
	w.until(t, w.responds(query{client: stranger, path: "admin"}, "403"))
	w.until(t, w.responds(query{client: stranger, path: "admin", header: lies}, "403"))
	w.until(t, w.responds(query{path: "admin", header: lies}, "403"))
	w.until(t, w.responds(query{client: stranger, path: "other"}, "200 /other "))
}

// findsDevices checks the match of devices by a Discovery's result, which the test writes in place
// of the provider.
func findsDevices(t *testing.T, w *environment) {
	u := exampleOf(t, "route-policy-devices.yaml")
	w.create(t, u)
	staff := func(addr string) query { return query{client: addr, path: "staff"} }
	w.until(t, w.responds(staff(operator), "403"))
	w.until(t, func(ctx context.Context) error {
		p, err := w.policy(ctx, "staff")
		if err == nil && (len(p.Status.Rules) != 3 || !strings.Contains(p.Status.Rules[0].Message, "not known yet")) {
			err = errors.Errorf("rules: %+v", p.Status.Rules)
		}
		return err
	})
	looks := map[string]tailnetv1alpha1.DiscoveryParameters{}
	w.until(t, func(ctx context.Context) error {
		clear(looks)
		for _, d := range w.searches(ctx, t) {
			looks[d.Name] = d.Spec.ForProvider
			if ref := d.Spec.ProviderConfigReference; ref.Kind != "ClusterProviderConfig" || ref.Name != "quickstart" {
				return errors.Errorf("%s uses %v", d.Name, ref)
			}
		}
		if len(looks) != 2 {
			return errors.Errorf("there are %d Discoveries, want one for each of two matches", len(looks))
		}
		return nil
	})
	for n, p := range looks {
		switch {
		case len(p.Users) == 1 && p.Users[0] == "amelie@example.com":
			w.finds(t, n, operator)
		case len(p.TagSelectors) == 1 && slices.Equal(p.Include, []string{"build-*"}):
			w.finds(t, n, "100.64.1.8", "100.99.0.8")
		default:
			t.Errorf("%s selects %+v", n, p)
		}
	}
	w.until(t, w.responds(staff(operator), "200 /staff "))
	w.until(t, w.responds(staff("100.64.1.8"), "200 /staff "))
	// The match requires an address of a range as well.
	w.until(t, w.responds(staff("100.99.0.8"), "403"))
	w.until(t, w.responds(staff(stranger), "403"))
	w.accepted(t, "staff", map[string]string{"Gateway/default/gw": "True/Accepted"})

	began := time.Now()
	for n, p := range looks {
		if len(p.Users) > 0 {
			w.finds(t, n)
		}
	}
	w.until(t, w.responds(staff(operator), "403"))
	t.Logf("a removed device is denied after %s", time.Since(began).Round(time.Millisecond))

	// Discoveries that no policy needs are deleted.
	w.patch(t, policyNamed("staff"), `{"spec":{"rules":[{"name":"closed","matches":[{"path":{"type":"PathPrefix","value":"/staff"}}],"actions":[{"type":"Deny"}]}]}}`)
	w.until(t, func(ctx context.Context) error {
		if n := len(w.searches(ctx, t)); n > 0 {
			return errors.Errorf("there are still %d Discoveries", n)
		}
		return nil
	})
	w.remove(t, policyNamed("staff"))
}

// searches returns the Discoveries of policies.
func (w *environment) searches(ctx context.Context, t *testing.T) []tailnetv1alpha1.Discovery {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind("DiscoveryList"))
	if err := w.kube.List(ctx, l, client.HasLabels{ir.RoutePolicyLabel}); err != nil {
		t.Fatal(err)
	}
	out := make([]tailnetv1alpha1.Discovery, len(l.Items))
	for i := range l.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(l.Items[i].Object, &out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// finds writes the devices of a Discovery, one for each address.
func (w *environment) finds(t *testing.T, name string, addresses ...string) {
	t.Helper()
	found := []any{}
	for i, a := range addresses {
		found = append(found, map[string]any{"source": "Devices", "name": fmt.Sprintf("device-%d", i), "addresses": []any{a}})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"atProvider": map[string]any{"count": len(found), "discovered": found}}})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind(tailnetv1alpha1.DiscoveryKind))
	u.SetNamespace("default")
	u.SetName(name)
	if err := w.kube.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// takesEffect checks how soon a policy and its edit take effect, also on a route without a backend
// of the extension.
func takesEffect(t *testing.T, w *environment) {
	began := time.Now()
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: plain}], rules: [
{name: a, matches: [{path: {value: /closed}}], actions: [{type: Deny}]}]}`, "plain"))
	w.until(t, w.responds(query{host: "plain.example.com", path: "closed"}, "403"))
	t.Logf("a policy takes effect after %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	w.patch(t, policyNamed("plain"), `{"spec":{"rules":[{"name":"a","matches":[{"path":{"type":"PathPrefix","value":"/shut"}}],"actions":[{"type":"Deny"}]}]}}`)
	w.until(t, w.responds(query{host: "plain.example.com", path: "shut"}, "403"))
	w.until(t, w.responds(query{host: "plain.example.com", path: "closed"}, "200 /closed "))
	t.Logf("an edit of it takes effect after %s", time.Since(began).Round(time.Millisecond))
	w.remove(t, policyNamed("plain"))
	w.until(t, w.responds(query{host: "plain.example.com", path: "shut"}, "200 /shut "))
}

// deniesGRPC checks a policy of the Gateway on a GRPCRoute. The route's own policy takes
// precedence.
func deniesGRPC(t *testing.T, w *environment) {
	w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001")
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: http}], rules: [
{name: a, matches: [{path: {value: /grpc.health.v1.Health}}], actions: [{type: Deny}]}]}`, "health"))
	grpc := query{host: "grpc.example.com", path: "grpc.health.v1.Health/Check"}
	w.until(t, w.responds(grpc, "403"))
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: GRPCRoute, name: grpc}], rules: [
{name: a, actions: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x, value: 100%}]}}]}]}`, "open"))
	w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001")
	w.remove(t, policyNamed("health"))
	w.remove(t, policyNamed("open"))
}

// conflicts checks that both policies of a conflict report it, and references to missing objects.
// The name decides which of two policies of the same second is younger.
func conflicts(t *testing.T, w *environment) {
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}], rules: [
{name: late, matches: [{path: {value: /admin/late}}], actions: [{type: Redirect, redirect: {path: /}}]}]}`, "younger"))
	w.accepted(t, "younger", map[string]string{"Gateway/default/gw": "False/Conflicted"})
	w.until(t, w.collide(gatewayv1alpha1.PriorityConflict))
	for conflict, spec := range map[gatewayv1alpha1.RoutePolicyConflictType]string{
		// The effect is the same, or a nearer target takes precedence.
		gatewayv1alpha1.OverlappingRule:   `{"rules":[{"name":"late","matches":[{"path":{"type":"PathPrefix","value":"/admin/late"}}],"actions":[{"type":"Deny"}]}]}`,
		gatewayv1alpha1.ConflictingAction: `{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"gw","sectionName":"http"}],"rules":[{"name":"late","matches":[{"path":{"type":"PathPrefix","value":"/admin/late"}}],"actions":[{"type":"Redirect","redirect":{"path":"/"}}]}]}`,
	} {
		w.patch(t, policyNamed("younger"), `{"spec":{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","name":"web"}]}}`)
		w.patch(t, policyNamed("younger"), `{"spec":`+spec+`}`)
		w.until(t, w.collide(conflict))
		w.until(t, w.responds(query{path: "admin/late"}, "403"))
	}
	w.patch(t, policyNamed("younger"), `{"spec":{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","name":"web"}]}}`)
	// A higher priority decides.
	w.patch(t, policyNamed("younger"), `{"spec":{"rules":[{"name":"late","priority":10,"matches":[{"path":{"type":"PathPrefix","value":"/admin/late"}}],"actions":[{"type":"Redirect","redirect":{"path":"/"}}]}]}}`)
	w.accepted(t, "younger", map[string]string{"Gateway/default/gw": "True/Accepted"})
	w.until(t, w.responds(query{path: "admin/late"}, "302 http://web.example.com/"))
	w.patch(t, policyNamed("younger"), `{"spec":{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","name":"gone"}]}}`)
	w.accepted(t, "younger", map[string]string{"HTTPRoute/default/gone": "False/TargetNotFound"})
	w.until(t, w.responds(query{path: "admin/late"}, "403"))
	w.remove(t, policyNamed("younger"))
}

// collide returns a check that both policies report this conflict, and no other.
func (w *environment) collide(kind gatewayv1alpha1.RoutePolicyConflictType) func(context.Context) error {
	return func(ctx context.Context) error {
		for name, want := range map[string][]gatewayv1alpha1.RoutePolicyConflict{
			"younger": {{Type: kind, Rule: "late", ConflictingPolicy: "default/web", ConflictingRule: "closed"}},
			"web":     {{Type: kind, Rule: "closed", TakesPrecedence: true, ConflictingPolicy: "default/younger", ConflictingRule: "late"}},
		} {
			p, err := w.policy(ctx, name)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, p.Status.PolicyConflicts); diff != "" {
				return errors.Errorf("conflicts of %s: -want, +got:\n%s", name, diff)
			}
		}
		return nil
	}
}

// A query is a request. The zero value is a request for / of the example's host.
type query struct {
	// client is the client's address in the PROXY protocol. Empty selects the other listener.
	client     string
	host, path string
	header     http.Header
}

// responds returns a check of the response to a request on a new connection: a status, with the
// body of a 200 or the location of a redirect.
func (w *environment) responds(a query, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		url, dial := gateway, w.Dial
		if a.client != "" {
			url, dial = fromTailnet, func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := w.Dial(ctx, network, addr)
				if err == nil {
					_, err = fmt.Fprintf(c, "PROXY TCP4 %s 127.0.0.1 40000 8889\r\n", a.client)
				}
				return c, err
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+a.path, nil)
		if err != nil {
			return err
		}
		if req.Host = a.host; a.host == "" {
			req.Host = "web.example.com"
		}
		if a.header != nil {
			req.Header = a.header.Clone()
		}
		c := &http.Client{
			Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		rsp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer rsp.Body.Close() // The body is only read.
		b, err := io.ReadAll(rsp.Body)
		if err != nil {
			return err
		}
		got := strconv.Itoa(rsp.StatusCode)
		switch {
		case rsp.StatusCode == http.StatusOK:
			got += " " + string(b)
		case rsp.Header.Get("Location") != "":
			got += " " + rsp.Header.Get("Location")
		}
		if got != want {
			return errors.Errorf("%+v returns %q, want %q", a, got, want)
		}
		return nil
	}
}

// exampleOf returns a policy of an example, in the tests' namespace.
func exampleOf(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(b), "namespace: quickstart", "namespace: default")), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func policyNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleRoutePolicyKind))
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func policyOf(t *testing.T, spec, name string) *unstructured.Unstructured {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	u, content := policyNamed(name), map[string]any{}
	if err := json.Unmarshal(j, &content); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = content
	return u
}

func (w *environment) create(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if err := w.kube.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func (w *environment) policy(ctx context.Context, name string) (*gatewayv1alpha1.TailscaleRoutePolicy, error) {
	u := policyNamed(name)
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return nil, err
	}
	p := &gatewayv1alpha1.TailscaleRoutePolicy{}
	return p, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
}

// accepted waits until a policy reports for its newest spec, by ancestor, whether it is accepted.
func (w *environment) accepted(t *testing.T, name string, want map[string]string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		p, err := w.policy(ctx, name)
		if err != nil {
			return err
		}
		got := map[string]string{}
		for _, a := range p.Status.Ancestors {
			ancestor := strings.Join([]string{string(*a.AncestorRef.Kind), string(*a.AncestorRef.Namespace), string(a.AncestorRef.Name)}, "/")
			for _, c := range a.Conditions {
				got[ancestor] = string(c.Status) + "/" + c.Reason
				if c.ObservedGeneration != p.Generation {
					got[ancestor] += " of another generation"
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.Errorf("ancestors of %s: -want, +got:\n%s", name, diff)
		}
		// An accepted policy has an active rule.
		acts := slices.ContainsFunc(p.Status.Rules, func(r gatewayv1alpha1.RoutePolicyRuleStatus) bool { return r.Active })
		if wants := strings.Contains(fmt.Sprint(want), "True"); acts != wants {
			return errors.Errorf("rules of %s: %v", name, p.Status.Rules)
		}
		return nil
	})
}
