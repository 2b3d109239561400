// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// policyOfCAs returns a BackendTLSPolicy of an age for a TailscaleServices, with ConfigMaps.
func policyOfCAs(policy, target string, age int, configMaps ...string) string {
	var refs []string
	for _, n := range configMaps {
		refs = append(refs, fmt.Sprintf(`{group: "", kind: ConfigMap, name: %s}`, n))
	}
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: %s, creationTimestamp: %q}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: %s}]
  validation: {hostname: web.example.com, caCertificateRefs: [%s]}
`, policy, time.Unix(int64(age), 0).UTC().Format(time.RFC3339), target, strings.Join(refs, ", "))
}

// configMapOf returns a ConfigMap with the certificate of configMapCA.
func configMapOf(n string) string { return strings.Replace(configMapCA, "name: ca", "name: "+n, 1) }

// TestConfigMaps checks that a store wants the ConfigMaps that BackendTLSPolicies of our kinds name, and
// Envoy Gateway's configuration, and no others.
func TestConfigMaps(t *testing.T) {
	config := types.NamespacedName{Namespace: "system", Name: "config"}
	service := strings.NewReplacer("group: gateway.tailscale.com, kind: TailscaleServices", `group: "", kind: Service`).Replace(policyOfCAs("service", "web", 1, "of-service"))
	secret := strings.Replace(policyOfCAs("secret", "web", 1, "of-secret"), "kind: ConfigMap", "kind: Secret", 1)
	s := NewStore()
	s.EnvoyGatewayConfig(config)
	apply(t, s, false, policyOfCAs("ours", "web", 1, "ca", "ca", "more"), service, secret)
	select {
	case <-s.ConfigMapsChanged():
	default:
		t.Error("no notification of ConfigMaps to read")
	}
	if diff := cmp.Diff([]types.NamespacedName{name("ca"), name("more"), config}, s.ConfigMaps()); diff != "" {
		t.Errorf("ConfigMaps(): -want, +got:\n%s", diff)
	}
	apply(t, s, true, policyOfCAs("ours", "web", 1, "ca"))
	select {
	case <-s.ConfigMapsChanged():
	default:
		t.Error("no notification that ConfigMaps are not to be read any more")
	}
	if diff := cmp.Diff([]types.NamespacedName{config}, s.ConfigMaps()); diff != "" {
		t.Errorf("ConfigMaps() without the policy: -want, +got:\n%s", diff)
	}
}

// TestTooManyConfigMaps names more ConfigMaps than a namespace may, and removes its oldest policy.
func TestTooManyConfigMaps(t *testing.T) {
	const perPolicy = 8
	const count = limits.NamespaceConfigMaps/perPolicy + 1
	s := NewStore()
	policy := func(i int) string {
		var names []string
		for j := range perPolicy {
			names = append(names, fmt.Sprintf("ca-%d-%d", i, j))
		}
		return policyOfCAs(fmt.Sprintf("p%d", i), fmt.Sprintf("web%d", i), i, names...)
	}
	objects := []string{serviceApp, sliceApp}
	for i := range count {
		web := strings.NewReplacer("name: web", fmt.Sprintf("name: web%d", i))
		objects = append(objects, web.Replace(routeToWeb), web.Replace(servicesWeb))
	}
	apply(t, s, false, objects...)
	for i := count - 1; i >= 0; i-- {
		apply(t, s, false, policy(i))
	}
	if got := len(s.ConfigMaps()); got != limits.NamespaceConfigMaps {
		t.Errorf("%d ConfigMaps are read, want %d", got, limits.NamespaceConfigMaps)
	}
	check := func(stage string, i int, refs, message string) {
		t.Helper()
		k := keyWeb
		k.Name = fmt.Sprintf("web%d", i)
		target := s.Snapshot().Target(k)
		if len(target.TLSPolicies) != 1 || target.TLSPolicies[0].ResolvedRefs != refs || !strings.Contains(target.TLSPolicies[0].Message, message) {
			t.Errorf("%s: policy %d: want %s, %q, got %+v", stage, i, refs, message, target.TLSPolicies)
		}
		if target.Problem == "" || len(target.Localities) > 0 {
			t.Errorf("%s: policy %d: want no endpoints, got problem %q and %v", stage, i, target.Problem, target.Localities)
		}
	}
	for i := range count - 1 {
		check("all policies", i, "InvalidCACertificateRef", "is not known yet")
	}
	check("all policies", count-1, "TooManyConfigMaps", "name fewer ConfigMaps")
	apply(t, s, true, policy(0))
	check("without the oldest policy", count-1, "InvalidCACertificateRef", "is not known yet")
}

// TestConfigMapNotKnown edits a policy so that it names a ConfigMap that is not known yet. Until it is, the
// policy's status says so, whether or not the target keeps what it has.
func TestConfigMapNotKnown(t *testing.T) {
	unreadable := parse.UnreadableConfigMap(name("next"))
	absent := parse.ConfigMap{Authorities: backendtls.ParseAuthorities(nil)}
	api := ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "edge", Port: 443, Protocol: ir.ProtocolHTTP}
	routeToAPI := strings.Replace(routeToWeb, "kind: TailscaleServices, name: web, port: 80", "kind: TailscaleEndpoints, name: edge, port: 443", 1)
	ofAPI := func(configMap string) string {
		return strings.Replace(policyOfCAs("p", "edge", 1, configMap), "kind: TailscaleServices", "kind: TailscaleEndpoints", 1)
	}
	plain := []string{routeToWeb, servicesWeb, serviceApp, sliceApp}
	https := []string{routeToAPI, proxySetEdge, sliceEdge, endpointsEdge}
	verified := &ir.UpstreamTLS{ServerName: "web.example.com", CA: certificateCA}
	cases := map[string]struct {
		reason  string
		key     ir.TargetKey
		initial []string

		// policy names the ConfigMap next, and state is what is known of it.
		policy string
		state  *parse.ConfigMap
		final  []string

		tls     *ir.UpstreamTLS
		problem string
	}{
		"Plain": {
			reason: "Nothing should be sent to a target that had no TLS.", key: keyWeb, initial: plain, policy: policyOfCAs("p", "web", 1, "next"),
			problem: "names ConfigMap next, which is not known yet",
		},
		"Verified": {
			reason: "A target that serves with TLS should keep it.", key: keyWeb, initial: append([]string{policyOfCAs("p", "web", 1, "ca"), configMapCA}, plain...),
			policy: policyOfCAs("p", "web", 1, "next"), tls: verified,
		},
		"Changed": {
			reason: "It should keep it when something else of it changes meanwhile, too.", key: keyWeb, initial: append([]string{policyOfCAs("p", "web", 1, "ca"), configMapCA}, plain...),
			policy: policyOfCAs("p", "web", 1, "next"), final: []string{strings.Replace(sliceApp, "10.0.0.1", "10.0.0.9", 1)}, tls: verified,
		},
		"Known": {
			reason: "The certificates should apply once they are known.", key: keyWeb, initial: append([]string{tlsPolicy}, plain...),
			policy: strings.Replace(policyOfCAs("web", "web", 1, "next"), "hostname: web", "hostname: new", 1), final: []string{configMapOf("next")},
			tls: &ir.UpstreamTLS{ServerName: "new.example.com", CA: certificateCA},
		},
		"Missing": {
			reason: "Nothing should be sent once it is known that the ConfigMap does not exist.", key: keyWeb, initial: append([]string{policyOfCAs("p", "web", 1, "ca"), configMapCA}, plain...),
			policy: policyOfCAs("p", "web", 1, "next"), state: &absent,
			problem: "names ConfigMap next, which does not exist; create it",
		},
		"Unreadable": {
			reason: "A ConfigMap that the extension may not read is known to be unusable.", key: keyWeb, initial: append([]string{policyOfCAs("p", "web", 1, "ca"), configMapCA}, plain...),
			policy: policyOfCAs("p", "web", 1, "next"), state: &unreadable,
			problem: "names ConfigMap next, which the extension may not read; grant it list and watch",
		},
		"Refused": {
			reason: "A target whose policy could not be applied should stay without endpoints.", key: keyWeb,
			initial: append([]string{policyOfCAs("p", "web", 1, "ca"), strings.Replace(configMapCA, certificateInYAML, "none", 1)}, plain...),
			policy:  policyOfCAs("p", "web", 1, "next"), problem: "is not known yet",
		},
		"HTTPS": {
			reason: "Endpoints with HTTPS should keep the verification that they had without a policy.", key: api, initial: https,
			policy: ofAPI("next"), tls: &ir.UpstreamTLS{ServerName: "api.tail1.ts.net"},
		},
		"RefusedHTTPS": {
			reason: "They should not get it back when the policy before could not be applied.", key: api,
			initial: append([]string{ofAPI("ca"), strings.Replace(configMapCA, certificateInYAML, "none", 1)}, https...),
			policy:  ofAPI("next"), tls: &ir.UpstreamTLS{ServerName: "api.tail1.ts.net"}, problem: "is not known yet",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			apply(t, s, false, tc.initial...)
			apply(t, s, false, tc.policy)
			if tc.state != nil {
				s.SetConfigMap(name("next"), tc.state)
			}
			apply(t, s, false, tc.final...)
			got := s.Snapshot().Target(tc.key)
			if !strings.Contains(got.Problem, tc.problem) || (got.Problem == "") != (tc.problem == "") || (len(got.Localities) == 0) != (tc.problem != "") || (len(got.TLSPolicies) == 0) != (n == "Known") {
				t.Errorf("%s\nwant problem %q, got %q, localities %v and policies %v", tc.reason, tc.problem, got.Problem, got.Localities, got.TLSPolicies)
			}
			if diff := cmp.Diff(tc.tls, got.Shape.TLS); diff != "" {
				t.Errorf("%s\nTLS: -want, +got:\n%s", tc.reason, diff)
			}
			if n == "Changed" && !strings.Contains(fmt.Sprint(got.Localities), "10.0.0.9") {
				t.Errorf("%s\nwant the new endpoint, got %v", tc.reason, got.Localities)
			}
		})
	}
}
