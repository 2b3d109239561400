// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

const (
	// withAuthority is a bootstrap with the authority tailscale, and withoutAuthority one
	// with another authority.
	withAuthority    = `{type: Merge, value: "config_sources: [{authorities: [{name: other}]}, {authorities: [{name: tailscale}]}]"}`
	withoutAuthority = `{type: Merge, value: "config_sources: [{authorities: [{name: other}]}]"}`
)

// proxyOf returns the EnvoyProxy NAMESPACE/NAME with a spec, stripped.
func proxyOf(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	ns, n, _ := strings.Cut(name, "/")
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyProxy\nmetadata: {namespace: %s, name: %s}\nspec: %s\n", ns, n, spec), &u.Object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse.Strip(u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestBootstrapped(t *testing.T) {
	cases := map[string]struct {
		reason string

		// defaults is the spec of the EnvoyProxy in Envoy Gateway's configuration. class and
		// gateway are the specs of the EnvoyProxies that the GatewayClass and the Gateway
		// name. Empty means none, and "missing" an EnvoyProxy that does not exist.
		defaults, class, gateway string

		want bool
	}{
		"None":              {reason: "An Envoy without an EnvoyProxy has no authority."},
		"Default":           {reason: "Without an EnvoyProxy the bootstrap of the default applies.", defaults: `{bootstrap: ` + withAuthority + `}`, want: true},
		"DefaultWithout":    {reason: "The default may have another authority.", defaults: `{bootstrap: ` + withoutAuthority + `}`},
		"Class":             {reason: "The EnvoyProxy of the GatewayClass has the authority.", class: `{bootstrap: ` + withAuthority + `}`, want: true},
		"ClassReplaces":     {reason: "An EnvoyProxy without mergeType replaces the default.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{}`},
		"ClassMerges":       {reason: "An EnvoyProxy that is merged keeps the default's bootstrap.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: StrategicMerge}`, want: true},
		"ClassOverrides":    {reason: "The bootstrap of an EnvoyProxy that is merged replaces the default's.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: StrategicMerge, bootstrap: ` + withoutAuthority + `}`},
		"ClassMissing":      {reason: "Envoy Gateway refuses a GatewayClass whose EnvoyProxy does not exist.", defaults: `{bootstrap: ` + withAuthority + `}`, class: "missing"},
		"Gateway":           {reason: "The EnvoyProxy of the Gateway has the authority.", class: `{}`, gateway: `{bootstrap: ` + withAuthority + `}`, want: true},
		"GatewayReplaces":   {reason: "An EnvoyProxy without mergeType replaces that of the class.", class: `{bootstrap: ` + withAuthority + `}`, gateway: `{}`},
		"GatewayMerges":     {reason: "An EnvoyProxy that is merged keeps the class's bootstrap.", class: `{bootstrap: ` + withAuthority + `}`, gateway: `{mergeType: JSONMerge}`, want: true},
		"GatewayMergesAll":  {reason: "The Gateway's mergeType applies to the default too if the class has none.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{}`, gateway: `{mergeType: JSONMerge}`, want: true},
		"ClassKeepsDefault": {reason: "The class's mergeType takes precedence for the default.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: Replace}`, gateway: `{mergeType: JSONMerge}`},
		"GatewayMissing":    {reason: "Envoy Gateway refuses a Gateway whose EnvoyProxy does not exist.", defaults: `{bootstrap: ` + withAuthority + `}`, gateway: "missing"},
		"MergedGateways":    {reason: "The EnvoyProxies of Gateways that share Envoys are ignored.", class: `{mergeGateways: true, bootstrap: ` + withAuthority + `}`, gateway: `{}`, want: true},
		"Replace":           {reason: "A bootstrap without a type replaces Envoy Gateway's.", class: `{bootstrap: {value: "config_sources: [{authorities: [{name: tailscale}]}]"}}`, want: true},
		"Unreadable":        {reason: "A bootstrap that is not YAML has no authority.", class: `{bootstrap: {type: Merge, value: "config_sources: ["}}`},
		"Large":             {reason: "A bootstrap that is too large is not read.", class: `{bootstrap: {type: Merge, value: "config_sources: [{authorities: [{name: tailscale}]}]\n#` + strings.Repeat("x", parse.MaxBootstrap) + `"}}`},
		"Elsewhere":         {reason: "The name of a cluster is no authority.", class: `{bootstrap: {type: Merge, value: "static_resources: {clusters: [{name: tailscale}]}"}}`},
		"PatchAll":          {reason: "A patch may set all sources.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: add, path: /config_sources, value: [{authorities: [{name: tailscale}]}]}]}}`, want: true},
		"PatchOne":          {reason: "A patch may add a source.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: add, path: /admin, value: 1}, {op: add, path: /config_sources/-, value: {authorities: [{name: tailscale}]}}]}}`, want: true},
		"PatchRemoves":      {reason: "A patch that removes a source adds none.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: remove, path: /config_sources/0, value: {authorities: [{name: tailscale}]}}]}}`},
		"NotAString":        {reason: "An EnvoyProxy that cannot be read has no authority.", class: `{bootstrap: {type: Merge, value: 1}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gw := types.NamespacedName{Namespace: "shop", Name: "gw"}
			class := &gwapiv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "envoy"}}
			gateway := &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: gw.Namespace, Name: gw.Name}, Spec: gwapiv1.GatewaySpec{GatewayClassName: "envoy"}}
			changes := []Change{}
			if tc.class != "" {
				ns := gwapiv1.Namespace("system")
				class.Spec.ParametersRef = &gwapiv1.ParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Namespace: &ns, Name: "class"}
			}
			if tc.class != "" && tc.class != "missing" {
				changes = append(changes, Change{Object: proxyOf(t, "system/class", tc.class)})
			}
			if tc.gateway != "" {
				gateway.Spec.Infrastructure = &gwapiv1.GatewayInfrastructure{ParametersRef: &gwapiv1.LocalParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Name: "gateway"}}
			}
			if tc.gateway != "" && tc.gateway != "missing" {
				changes = append(changes, Change{Object: proxyOf(t, "shop/gateway", tc.gateway)})
			}
			changes = append(changes, Change{Object: class}, Change{Object: gateway})
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "config"}, Data: map[string]string{parse.ConfigKey: "gateway: {}\n", "other": "x"}}
			if tc.defaults != "" {
				config.Data[parse.ConfigKey] += "envoyProxy: " + tc.defaults + "\n"
			}
			changes = append(changes, Change{Object: config})

			// The order of the objects does not matter.
			for range changes {
				changes = append(changes[1:], changes[0])
				s := NewStore()
				s.EnvoyGatewayConfig(types.NamespacedName{Namespace: "system", Name: "config"})
				for _, c := range changes {
					if err := applyChanges(s, c); err != nil && name != "NotAString" {
						t.Fatal(err)
					}
				}
				if got := s.Snapshot().HasAuthority(gw); got != tc.want {
					t.Fatalf("%s: Bootstrapped(...): want %t, got %t", tc.reason, tc.want, got)
				}
				// Nor has a Gateway whose default is not known.
				n := types.NamespacedName{Namespace: "system", Name: "config"}
				unreadable := parse.UnreadableConfigMap(n)
				if s.SetConfigMap(n, &unreadable); s.Snapshot().HasAuthority(gw) {
					t.Fatal("Bootstrapped(...): want false while the extension may not read the default")
				}
				// Without the objects no Gateway has the authority.
				for _, c := range changes {
					if c.Deleted = true; applyChanges(s, c) != nil {
						t.Fatalf("cannot remove %T", c.Object)
					}
				}
				if s.Snapshot().HasAuthority(gw) {
					t.Fatal("Bootstrapped(...): want false for a deleted Gateway")
				}
			}
		})
	}
}

// TestBootstrapDigest checks that Envoy Gateway translates a Gateway again when its Envoys
// get the authority, and no other Gateway.
func TestBootstrapDigest(t *testing.T) {
	s := NewStore()
	apply(t, s, false, routeToWeb, servicesWeb, gatewayOf("gw"))
	gateways := map[types.NamespacedName]string{}
	for n, d := range s.Snapshot().GatewayDigests() {
		gateways[n] = d
	}
	if len(gateways) != 1 {
		t.Fatalf("want one Gateway with routes, got %v", gateways)
	}
	for n, initial := range gateways {
		objects := []Change{
			{Object: &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}, Spec: gwapiv1.GatewaySpec{
				GatewayClassName: "envoy",
				Listeners:        []gwapiv1.Listener{{AllowedRoutes: &gwapiv1.AllowedRoutes{Namespaces: &gwapiv1.RouteNamespaces{From: ptr.To(gwapiv1.NamespacesFromAll)}}}},
				Infrastructure:   &gwapiv1.GatewayInfrastructure{ParametersRef: &gwapiv1.LocalParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Name: "own"}},
			}}},
			{Object: &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "empty"}, Spec: gwapiv1.GatewaySpec{
				Infrastructure: &gwapiv1.GatewayInfrastructure{ParametersRef: &gwapiv1.LocalParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Name: "own"}},
			}}},
			{Object: proxyOf(t, n.Namespace+"/own", `{bootstrap: `+withAuthority+`}`)},
		}
		if err := applyChanges(s, objects...); err != nil {
			t.Fatal(err)
		}
		if s.Snapshot().GatewayDigest(n) == initial {
			t.Error("want another digest of the Gateway with the authority")
		}
		if d := s.Snapshot().GatewayDigest(types.NamespacedName{Namespace: n.Namespace, Name: "empty"}); d != "" {
			t.Error("a Gateway without routes has a digest")
		}
		if err := applyChanges(s, Change{Object: objects[2].Object, Deleted: true}); err != nil {
			t.Fatal(err)
		}
		if s.Snapshot().GatewayDigest(n) != initial {
			t.Error("want the first digest of the Gateway without the authority")
		}
	}
}

// TestFailOpen checks that policies know whether Envoy Gateway drops them after an error, whatever
// the order of the objects is.
func TestFailOpen(t *testing.T) {
	cases := map[string]struct {
		reason string
		config string
		want   bool
	}{
		"Closed":   {reason: "The default is false.", config: "extensionManager: {backendResources: [{group: gateway.tailscale.com, kind: TailscaleServices, version: v1alpha1}]}"},
		"Open":     {reason: "The setting of our extension counts.", config: "extensionManager: {failOpen: true, backendResources: [{group: gateway.tailscale.com, kind: TailscaleServices, version: v1alpha1}]}", want: true},
		"OneOfAll": {reason: "Envoy Gateway may have several extensions.", config: "extensionManagers: [{failOpen: false}, {failOpen: true, backendResources: [{group: gateway.tailscale.com}]}]", want: true},
		"Other":    {reason: "The setting of another extension does not count.", config: "extensionManagers: [{failOpen: true}, {failOpen: false, backendResources: [{group: gateway.tailscale.com}]}]"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			config := Change{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "config"}, Data: map[string]string{parse.ConfigKey: tc.config}}}
			for _, first := range []bool{true, false} {
				s := NewStore()
				s.EnvoyGatewayConfig(types.NamespacedName{Namespace: "system", Name: "config"})
				if first {
					if err := applyChanges(s, config); err != nil {
						t.Fatal(err)
					}
				}
				apply(t, s, false, routeToWeb, policyOf("p", `{name: a, actions: [{type: Deny}]}`))
				if err := applyChanges(s, config); err != nil {
					t.Fatal(err)
				}
				if got := s.Snapshot().Edit().Policies.Get(name("p")).FailOpen; got != tc.want {
					t.Errorf("%s: FailOpen: want %t, got %t", tc.reason, tc.want, got)
				}
				config.Deleted = true
				if err := applyChanges(s, config); err != nil {
					t.Fatal(err)
				}
				if s.Snapshot().Edit().Policies.Get(name("p")).FailOpen {
					t.Error("FailOpen: want false without a configuration")
				}
				config.Deleted = false
			}
		})
	}
}
