// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	envoygateway "github.com/tailscale-gateway/tailscale-gateway/package/envoy-gateway"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

var at = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func defaults() Options {
	return Options{
		CrossplaneNamespace: "crossplane-system", CrossplaneAccount: "crossplane", ProviderAccount: products.Provider,
		EnvoyGatewayNamespace: "envoy-gateway-system", ExtensionNamespace: "envoy-gateway-system",
		EnvoyGateway: Auto, Admission: true, Objects: true, Version: "v0.1.0",
	}
}

func deployment(namespace, name, account, version string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 2, Labels: map[string]string{"app.kubernetes.io/version": version}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: name, Args: []string{"core", "start"}}}}},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
}

// config returns the configuration that our values for Envoy Gateway lead to, with changes.
func config(t *testing.T, change func(manager map[string]any)) string {
	t.Helper()
	v := struct {
		Config struct {
			EnvoyGateway map[string]any `json:"envoyGateway"`
		} `json:"config"`
	}{}
	if err := yaml.Unmarshal(envoygateway.Values, &v); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(v.Config.EnvoyGateway["extensionManager"].(map[string]any))
	}
	b, err := json.Marshal(v.Config.EnvoyGateway)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// healthy returns the facts of a cluster in which a flavour of the kinds, the extension and Envoy Gateway work.
func healthy(t *testing.T, flavourName string) Facts {
	t.Helper()
	f := Facts{At: at, Kubernetes: Answer[string]{Value: "v1.35.4"}}
	f.Deployments.Value = []appsv1.Deployment{*deployment("crossplane-system", "crossplane", "crossplane", "2.4.0")}
	f.Packages.Value = map[string]Package{}
	for _, p := range products.Packages(flavourName) {
		f.Packages.Value[p.Name] = Package{
			Kind: string(p.Kind), Name: products.Object(p.Name), Image: products.Image(p.Name, "v0.1.0"),
			Installed: causes.Condition{Type: "Installed", Status: "True"}, Healthy: causes.Condition{Type: "Healthy", Status: "True"},
		}
	}
	want, err := flavourOf(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Definitions.Value, f.Compositions.Value, f.Served.Value = map[string]Definition{}, map[string]bool{}, map[string]bool{}
	f.CRDs.Value = map[string]CRD{}
	for name, offered := range want.definitions {
		d := Definition{Claims: offered, Established: causes.Condition{Type: "Established", Status: "True"}}
		if offered {
			d.Offered = causes.Condition{Type: "Offered", Status: "True"}
		}
		f.Definitions.Value[name] = d
		f.CRDs.Value[name] = CRD{Created: at.Add(-2 * time.Hour)}
	}
	for _, name := range want.compositions {
		f.Compositions.Value[name] = true
	}
	for _, k := range want.kinds {
		f.Served.Value[k] = true
	}
	f.Roles.Value = map[string]bool{}
	for _, name := range Roles() {
		f.Roles.Value[name] = true
	}
	f.Policies = map[string]Answer[Policy]{}
	for _, name := range append([]string{kustomization.PolicyInternalKinds}, kustomization.ExtensionPolicies...) {
		p, b := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		for kind, obj := range map[string]any{"ValidatingAdmissionPolicy": p, "ValidatingAdmissionPolicyBinding": b} {
			if err := kustomization.Get(kind, name, obj); err != nil {
				t.Fatal(err)
			}
		}
		f.Policies[name] = Answer[Policy]{Value: Policy{Policy: p, Binding: b}}
	}
	f.addRoutes(t)
	return f
}

// addRoutes adds Envoy Gateway and the extension, and all permissions.
func (f *Facts) addRoutes(t *testing.T) {
	t.Helper()
	for _, required := range []func(Options) ([]Rights, error){Required, RequiredByRoutes} {
		rights, err := required(defaults())
		if err != nil {
			t.Fatal(err)
		}
		f.Rights = append(f.Rights, rights...)
	}
	rules, err := parseRules(charts.ExtensionRules)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, res := range r.Resources {
				f.Served.Value[group+"/"+res] = true
			}
		}
	}
	f.Gateway = GatewayFacts{
		EnvoyGateway: Answer[*appsv1.Deployment]{Value: deployment("envoy-gateway-system", EnvoyGatewayDeployment, EnvoyGatewayDeployment, "v1.9.1")},
		Extension:    Answer[*appsv1.Deployment]{Value: deployment("envoy-gateway-system", charts.Extension, charts.Extension, "0.1.0")},
		Config:       Answer[string]{Value: config(t, nil)},
		Started:      Answer[time.Time]{Value: at.Add(-time.Hour)},
		CronJob:      Answer[bool]{Value: true},
	}
	f.CRDs.Value["tailscalerevisions.gateway.tailscale.com"] = CRD{Created: at.Add(-2 * time.Hour)}
	f.Gateway.Secrets = secrets(t, at.Add(-24*time.Hour))
	f.Objects.Value = []causes.Object{
		{Reference: causes.Reference{Kind: "TailscaleTailnet", Name: "example"}, Conditions: fine()},
		{Reference: causes.Reference{Kind: "TailscaleServices", Namespace: "shop", Name: "web"}, Conditions: fine()},
	}
}

func fine() []causes.Condition {
	return []causes.Condition{{Type: "Synced", Status: "True"}, {Type: "Ready", Status: "True"}}
}

// secrets returns the Secrets of the extension, with certificates that one authority issued at a time.
func secrets(t *testing.T, issued time.Time) map[string]Answer[Secret] {
	t.Helper()
	authority, err := credentials.NewAuthority(charts.Extension, issued)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Answer[Secret]{}
	for name, keys := range Secrets() {
		s := Secret{Keys: map[string]bool{}, Chain: parse(t, authority.Cert)}
		for _, k := range keys {
			s.Keys[k] = true
		}
		if name != secretAuthority {
			p, err := authority.Server([]string{name}, issued)
			if err != nil {
				t.Fatal(err)
			}
			s.Chain, s.Authorities = parse(t, p.Cert), parse(t, authority.Cert)
		}
		out[name] = Answer[Secret]{Value: s}
	}
	return out
}

func parse(t *testing.T, pem []byte) []*x509.Certificate {
	t.Helper()
	out, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
