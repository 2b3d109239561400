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
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

const (
	// withAuthority is a bootstrap that has the authority, and withoutAuthority one that
	// has another.
	withAuthority    = `{type: Merge, value: "config_sources: [{authorities: [{name: other}]}, {authorities: [{name: tailscale}]}]"}`
	withoutAuthority = `{type: Merge, value: "config_sources: [{authorities: [{name: other}]}]"}`
)

// proxyOf namespace/name with a spec.
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

		// defaults is the EnvoyProxy of Envoy Gateway's configuration, class and gateway
		// those that are named. Empty is none, and "missing" one that is not there.
		defaults, class, gateway string

		want bool
	}{
		"None":              {reason: "An Envoy without an EnvoyProxy has no authority."},
		"Default":           {reason: "Envoys without an EnvoyProxy have the default's bootstrap.", defaults: `{bootstrap: ` + withAuthority + `}`, want: true},
		"DefaultWithout":    {reason: "The default may have another authority.", defaults: `{bootstrap: ` + withoutAuthority + `}`},
		"Class":             {reason: "The EnvoyProxy of the GatewayClass has it.", class: `{bootstrap: ` + withAuthority + `}`, want: true},
		"ClassReplaces":     {reason: "An EnvoyProxy without mergeType replaces the default.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{}`},
		"ClassMerges":       {reason: "One that is merged keeps the default's bootstrap.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: StrategicMerge}`, want: true},
		"ClassOverrides":    {reason: "One that is merged may have a bootstrap of another kind.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: StrategicMerge, bootstrap: ` + withoutAuthority + `}`},
		"ClassMissing":      {reason: "Envoy Gateway refuses a GatewayClass whose EnvoyProxy is not there.", defaults: `{bootstrap: ` + withAuthority + `}`, class: "missing"},
		"Gateway":           {reason: "The EnvoyProxy of the Gateway has it.", class: `{}`, gateway: `{bootstrap: ` + withAuthority + `}`, want: true},
		"GatewayReplaces":   {reason: "An EnvoyProxy without mergeType replaces that of the class.", class: `{bootstrap: ` + withAuthority + `}`, gateway: `{}`},
		"GatewayMerges":     {reason: "One that is merged keeps the class's bootstrap.", class: `{bootstrap: ` + withAuthority + `}`, gateway: `{mergeType: JSONMerge}`, want: true},
		"GatewayMergesAll":  {reason: "Its mergeType counts for the default, too, where the class has none.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{}`, gateway: `{mergeType: JSONMerge}`, want: true},
		"ClassKeepsDefault": {reason: "The class's mergeType counts for the default first.", defaults: `{bootstrap: ` + withAuthority + `}`, class: `{mergeType: Replace}`, gateway: `{mergeType: JSONMerge}`},
		"GatewayMissing":    {reason: "Envoy Gateway refuses a Gateway whose EnvoyProxy is not there.", defaults: `{bootstrap: ` + withAuthority + `}`, gateway: "missing"},
		"MergedGateways":    {reason: "Of Gateways that share Envoys the EnvoyProxies do not count.", class: `{mergeGateways: true, bootstrap: ` + withAuthority + `}`, gateway: `{}`, want: true},
		"Replace":           {reason: "A bootstrap without a type replaces Envoy Gateway's.", class: `{bootstrap: {value: "config_sources: [{authorities: [{name: tailscale}]}]"}}`, want: true},
		"Unreadable":        {reason: "What is not YAML has nothing.", class: `{bootstrap: {type: Merge, value: "config_sources: ["}}`},
		"Large":             {reason: "What is too large is not read.", class: `{bootstrap: {type: Merge, value: "config_sources: [{authorities: [{name: tailscale}]}]\n#` + strings.Repeat("x", parse.MaxBootstrap) + `"}}`},
		"Elsewhere":         {reason: "The name of a cluster is no authority.", class: `{bootstrap: {type: Merge, value: "static_resources: {clusters: [{name: tailscale}]}"}}`},
		"PatchAll":          {reason: "A patch may set all sources.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: add, path: /config_sources, value: [{authorities: [{name: tailscale}]}]}]}}`, want: true},
		"PatchOne":          {reason: "A patch may add a source.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: add, path: /admin, value: 1}, {op: add, path: /config_sources/-, value: {authorities: [{name: tailscale}]}}]}}`, want: true},
		"PatchRemoves":      {reason: "A patch that removes a source adds none.", class: `{bootstrap: {type: JSONPatch, jsonPatches: [{op: remove, path: /config_sources/0, value: {authorities: [{name: tailscale}]}}]}}`},
		"NotAString":        {reason: "An EnvoyProxy that cannot be read has nothing.", class: `{bootstrap: {type: Merge, value: 1}}`},
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
			if _, err := parse.Strip(config); err != nil {
				t.Fatal(err)
			}
			changes = append(changes, Change{Object: config})

			// The order of objects does not matter.
			for range changes {
				changes = append(changes[1:], changes[0])
				s := NewStore()
				s.EnvoyGatewayConfig(types.NamespacedName{Namespace: "system", Name: "config"})
				for _, c := range changes {
					if err := s.Apply(c); err != nil && name != "NotAString" {
						t.Fatal(err)
					}
				}
				if got := s.Snapshot().HasAuthority(gw); got != tc.want {
					t.Fatalf("%s: Bootstrapped(...): want %t, got %t", tc.reason, tc.want, got)
				}
				// Without the objects there is nothing.
				for _, c := range changes {
					if c.Gone = true; s.Apply(c) != nil {
						t.Fatalf("cannot take %T away", c.Object)
					}
				}
				if s.Snapshot().HasAuthority(gw) {
					t.Fatal("Bootstrapped(...): a Gateway that is gone is")
				}
			}
		})
	}
}

// TestBootstrapDigest shows that Envoy Gateway is asked again about a Gateway whose Envoys
// come to have the authority, and about no other.
func TestBootstrapDigest(t *testing.T) {
	s := NewStore()
	apply(t, s, false, routeToWeb, servicesWeb)
	gateways := map[types.NamespacedName]string{}
	for n, d := range s.Snapshot().GatewayDigests() {
		gateways[n] = d
	}
	if len(gateways) != 1 {
		t.Fatalf("want one Gateway with routes, got %v", gateways)
	}
	for n, before := range gateways {
		objects := []Change{
			{Object: &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}, Spec: gwapiv1.GatewaySpec{
				GatewayClassName: "envoy",
				Infrastructure:   &gwapiv1.GatewayInfrastructure{ParametersRef: &gwapiv1.LocalParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Name: "own"}},
			}}},
			{Object: &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "empty"}, Spec: gwapiv1.GatewaySpec{
				Infrastructure: &gwapiv1.GatewayInfrastructure{ParametersRef: &gwapiv1.LocalParametersReference{Group: parse.GroupEnvoyGateway, Kind: parse.KindEnvoyProxy, Name: "own"}},
			}}},
			{Object: proxyOf(t, n.Namespace+"/own", `{bootstrap: `+withAuthority+`}`)},
		}
		if err := s.Apply(objects...); err != nil {
			t.Fatal(err)
		}
		if s.Snapshot().GatewayDigest(n) == before {
			t.Error("the digest of the Gateway is as before")
		}
		if d := s.Snapshot().GatewayDigest(types.NamespacedName{Namespace: n.Namespace, Name: "empty"}); d != "" {
			t.Error("a Gateway without routes has a digest")
		}
		if err := s.Apply(Change{Object: objects[2].Object, Gone: true}); err != nil {
			t.Fatal(err)
		}
		if s.Snapshot().GatewayDigest(n) != before {
			t.Error("the digest of the Gateway is not as before any more")
		}
	}
}
