// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// summaries returns what is wrong.
func summaries(r Report) []string {
	var out []string
	for _, f := range r.Findings {
		if f.Status == Wrong {
			out = append(out, f.Summary)
		}
	}
	return out
}

func TestAdmission(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Policy)
		want   []string
	}{
		"Applied": {reason: "Applied policies are found.", change: func(*Policy) {}},
		"Unbound": {
			reason: "A policy without a binding refuses nothing.", change: func(p *Policy) { p.Binding = nil },
			want: []string{"ValidatingAdmissionPolicyBinding tailscale-gateway-internal-kinds does not exist"},
		},
		"Warns": {
			reason: "A binding that only warns refuses nothing.",
			change: func(p *Policy) { p.Binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn} },
			want:   []string{"ValidatingAdmissionPolicyBinding tailscale-gateway-internal-kinds does not deny everywhere"},
		},
		"Older": {
			reason: "A policy that leaves a kind out is not the one of this version.",
			change: func(p *Policy) {
				r := &p.Policy.Spec.MatchConstraints.ResourceRules[0]
				r.Resources = r.Resources[1:]
			},
			want: []string{"ValidatingAdmissionPolicy tailscale-gateway-internal-kinds is not that of this version"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := healthy(t, products.FlavourNamespaced)
			p := f.Policies[kustomization.PolicyInternalKinds]
			tc.change(&p.Value)
			f.Policies[kustomization.PolicyInternalKinds] = p
			if diff := cmp.Diff(tc.want, summaries(Make(f, defaults()))); diff != "" {
				t.Errorf("%s\nMake(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCache(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   bool
	}{
		"Default":   {reason: "Crossplane watches all namespaces by default.", args: []string{"core", "start"}},
		"Flag":      {reason: "With the flag objects of other namespaces are never composed.", args: []string{"core", "start", "--watch-cache-namespaced"}, want: true},
		"True":      {reason: "The flag can have a value.", args: []string{"core", "start", "--watch-cache-namespaced=true"}, want: true},
		"False":     {reason: "The value can be the default.", args: []string{"core", "start", "--watch-cache-namespaced=false"}},
		"OtherFlag": {reason: "Only this flag matters.", args: []string{"--watch-cache-namespaced-too"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := healthy(t, products.FlavourNamespaced)
			f.Deployments.Value[0].Spec.Template.Spec.Containers[0].Args = tc.args
			// Deployments of other service accounts are not Crossplane.
			other := deployment("crossplane-system", "other", "other", "1")
			other.Spec.Template.Spec.Containers[0].Args = []string{flagNamespaced}
			f.Deployments.Value = append(f.Deployments.Value, *other)
			got := summaries(Make(f, defaults()))
			if (len(got) > 0) != tc.want {
				t.Errorf("%s\nMake(...): got %q", tc.reason, got)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, f *Facts)
		want   []string
		fix    string
	}{
		"Nothing": {
			reason: "The extension comes first.",
			change: func(_ *testing.T, f *Facts) { f.Gateway = GatewayFacts{} },
			want:   []string{"The extension is not installed: there is no Deployment envoy-gateway-system/tailscale-gateway-extension"}, fix: "helm upgrade --install tailscale-gateway-extension ",
		},
		"NoEnvoyGateway": {
			reason: "Then comes Envoy Gateway.",
			change: func(_ *testing.T, f *Facts) { f.Gateway.EnvoyGateway.Value = nil },
			want:   []string{"Envoy Gateway is not installed: there is no Deployment envoy-gateway-system/envoy-gateway"}, fix: "helm upgrade --install eg ",
		},
		"OldEnvoyGateway": {
			reason: "An old Envoy Gateway has not the hooks.",
			change: func(_ *testing.T, f *Facts) {
				f.Gateway.EnvoyGateway.Value.Labels["app.kubernetes.io/version"] = "v1.8.0"
			},
			want: []string{"Envoy Gateway is v1.8.0, which is older than 1.9"},
		},
		"NoCertificates": {
			reason: "The chart's CronJob creates missing Secrets; another upgrade with the same Job would not.",
			change: func(_ *testing.T, f *Facts) { f.Gateway.Secrets[charts.Extension+"-client"] = Answer[Secret]{} },
			want:   []string{"Secrets are missing: envoy-gateway-system/tailscale-gateway-extension-client"}, fix: "create job certificates-",
		},
		"HalfASecret": {
			reason: "A Secret without its key serves nobody.",
			change: func(_ *testing.T, f *Facts) {
				f.Gateway.CronJob.Value = false
				delete(f.Gateway.Secrets[charts.Extension+"-tls"].Value.Keys, "tls.key")
			},
			want: []string{"Secrets are missing: envoy-gateway-system/tailscale-gateway-extension-tls with tls.key"}, fix: "put a new certificate into the Secret",
		},
		"NoCRD": {
			reason: "Kinds that nobody defines are named, with what defines them.",
			change: func(_ *testing.T, f *Facts) {
				delete(f.Served.Value, "gateway.networking.k8s.io/grpcroutes")
				delete(f.Served.Value, "gateway.tailscale.com/tailscalerevisions")
			},
			want: []string{"The API server does not know grpcroutes.gateway.networking.k8s.io", "The API server does not know tailscalerevisions.gateway.tailscale.com"}, fix: "gateway-helm",
		},
		"NotReady": {
			reason: "For pods that do not run, kubectl shows more.",
			change: func(_ *testing.T, f *Facts) { f.Gateway.Extension.Value.Status.AvailableReplicas = 1 },
			want:   []string{"Deployment envoy-gateway-system/tailscale-gateway-extension has 1 of 2 pods that are ready"}, fix: "kubectl describe pods --namespace=envoy-gateway-system --selector=app=tailscale-gateway-extension",
		},
		"OtherExtension": {
			reason: "An Envoy Gateway that asks another extension does not ask ours.",
			change: func(t *testing.T, f *Facts) {
				t.Helper()
				f.Gateway.Config.Value = config(t, func(m map[string]any) {
					m["service"] = map[string]any{"fqdn": map[string]any{"hostname": "other.envoy-gateway-system.svc", "port": 5005}}
				})
			},
			want: []string{"Envoy Gateway does not have our values: ConfigMap envoy-gateway-system/envoy-gateway-config names no extension at the Service envoy-gateway-system/tailscale-gateway-extension, port 5005"},
		},
		"OldConfig": {
			reason: "Each missing setting of Envoy Gateway is listed.",
			change: func(t *testing.T, f *Facts) {
				t.Helper()
				f.Gateway.Config.Value = config(t, func(m map[string]any) {
					m["backendResources"] = m["backendResources"].([]any)[1:]
					m["maxMessageSize"] = "4Mi"
					m["failOpen"] = true
					m["hooks"] = map[string]any{"xdsTranslator": map[string]any{"post": []any{"Translation"}}}
					m["service"].(map[string]any)["tls"] = map[string]any{"certificateRef": map[string]any{"name": "mine"}}
				})
			},
			want: []string{"Envoy Gateway does not have our values: backendResources lacks TailscaleServices; the hook Translation does not include all listeners, routes, clusters and secrets; maxMessageSize is less than 256Mi; failOpen is true; tls.certificateRef is not the Secret envoy-gateway-system/tailscale-gateway-extension-ca; tls.clientCertificateRef is not the Secret envoy-gateway-system/tailscale-gateway-extension-client"},
			fix:  "envoy-gateway-values.yaml",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, o := healthy(t, products.FlavourNamespaced), defaults()
			o.EnvoyGateway = Require
			tc.change(t, &f)
			r := Make(f, o)
			if diff := cmp.Diff(tc.want, summaries(r)); diff != "" {
				t.Errorf("%s\nMake(...): -want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(r.Findings[0].Fix, tc.fix) {
				t.Errorf("%s\nFix: got %q, want %q", tc.reason, r.Findings[0].Fix, tc.fix)
			}
		})
	}
}

// TestCommands checks that commands are for the caller's cluster, keep the values of releases, and are safe for a shell.
func TestCommands(t *testing.T) {
	f, o := healthy(t, products.FlavourNamespaced), defaults()
	o.Context, o.Kubeconfig = "it's mine", "/tmp/config"
	f.Releases = map[string]Release{charts.Install: {Name: "ts", Namespace: "xp", Version: "0.0.9"}, charts.Extension: {Name: "ts", Namespace: "xp", Version: "0.0.9"}}
	want := map[string]string{
		o.ours(f, charts.Install, ""):   `helm --kubeconfig=/tmp/config --kube-context='it'\''s mine' upgrade --install ts oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway --version=0.0.9 --namespace=xp --reset-then-reuse-values`,
		o.ours(f, charts.Extension, ""): `helm --kubeconfig=/tmp/config --kube-context='it'\''s mine' upgrade --install ts oci://ghcr.io/tailscale-gateway/charts/tailscale-gateway --version=0.0.9 --namespace=xp --reset-then-reuse-values --set=tailscale-gateway-extension.enabled=true`,
		o.kubectl("get xrd"):            `kubectl --kubeconfig=/tmp/config --context='it'\''s mine' get xrd`,
	}
	for got, command := range want {
		if diff := cmp.Diff(command, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
}

// TestHostile checks that texts of others do nothing to a terminal, and that many faults stay readable.
func TestHostile(t *testing.T) {
	f := healthy(t, products.FlavourNamespaced)
	for n := range 100 {
		f.Objects.Value = append(f.Objects.Value, causes.Object{
			Reference:  causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: strings.Repeat("a", n+1)},
			Conditions: failing("Accepted", "Invalid", "\x1b[2J\u202e"+strings.Repeat("x\n", 1000+n)),
		})
	}
	out := Make(f, defaults()).Text()
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("Text() has control characters: %q", out)
	}
	if n := strings.Count(out, "\n"); n > 3*maxFindings+3 {
		t.Errorf("Text(): %d lines for 100 faults", n)
	}
}
