// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package envoygateway

import (
	"encoding/json"
	"slices"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// TestValues decodes the configuration with Envoy Gateway's types, because Envoy Gateway
// ignores unknown fields.
func TestValues(t *testing.T) {
	values := struct {
		Config struct {
			EnvoyGateway json.RawMessage `json:"envoyGateway"`
		} `json:"config"`
		Deployment struct {
			Pod struct {
				Affinity corev1.Affinity `json:"affinity"`
			} `json:"pod"`
		} `json:"deployment"`
	}{}
	if err := yaml.UnmarshalStrict(Values, &values); err != nil {
		t.Fatal(err)
	}
	spec := egv1a1.EnvoyGatewaySpec{}
	if err := yaml.UnmarshalStrict(values.Config.EnvoyGateway, &spec); err != nil {
		t.Fatal(err)
	}
	m := spec.ExtensionManager
	if m == nil || m.Service == nil || m.Service.FQDN == nil || m.Service.TLS == nil || m.MaxMessageSize == nil || m.Hooks == nil || m.Hooks.XDSTranslator == nil {
		t.Fatalf("the configuration has no extension: %+v", m)
	}
	if diff := cmp.Diff([]egv1a1.XDSTranslatorHook{egv1a1.XDSTranslation}, m.Hooks.XDSTranslator.Post); diff != "" {
		t.Errorf("hooks: -want, +got:\n%s", diff)
	}
	tr := m.Hooks.XDSTranslator.Translation
	if tr == nil || tr.Listener == nil || tr.Route == nil || tr.Cluster == nil || tr.Secret == nil {
		t.Fatalf("the hook is not handed all that it changes: %+v", tr)
	}
	for name, all := range map[string]*bool{
		"listener": tr.Listener.IncludeAll, "route": tr.Route.IncludeAll, "cluster": tr.Cluster.IncludeAll, "secret": tr.Secret.IncludeAll,
	} {
		if all == nil || !*all {
			t.Errorf("the hook is not handed each %s", name)
		}
	}
	if got, want := m.Service.FQDN.Hostname, charts.Extension+".envoy-gateway-system.svc.cluster.local"; got != want {
		t.Errorf("hooks go to %q, our Service is %q", got, want)
	}
	if got, want := string(m.Service.TLS.CertificateRef.Name), charts.Extension+"-ca"; got != want {
		t.Errorf("the authority is looked for in %q, our Secret is %q", got, want)
	}
	if r := m.Service.TLS.ClientCertificateRef; r == nil || string(r.Name) != charts.Extension+"-client" {
		t.Errorf("the client certificate is looked for in %v, our Secret is %q", r, charts.Extension+"-client")
	}
	for _, gvk := range slices.Concat(m.BackendResources, m.PolicyResources) {
		if gvk.Group != gatewayv1alpha1.Group || gvk.Version != gatewayv1alpha1.Version {
			t.Errorf("no kind of ours is %v", gvk)
		}
	}
	near := values.Deployment.Pod.Affinity.PodAffinity
	if near == nil || len(near.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("Envoy Gateway may run where no extension does, and hooks do not leave its node: %+v", near)
	}
}
