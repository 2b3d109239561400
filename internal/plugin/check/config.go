// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	envoygateway "github.com/tailscale-gateway/tailscale-gateway/package/envoy-gateway"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// values checks the configuration of Envoy Gateway for the extension.
func values(f Facts, o Options) result {
	if f.Gateway.Config.Unknown != "" {
		return unknown("whether Envoy Gateway asks the extension", f.Gateway.Config.Unknown)
	}
	object := "ConfigMap " + o.EnvoyGatewayNamespace + "/" + EnvoyGatewayConfigMap
	config := &egv1a1.EnvoyGateway{}
	if err := yaml.Unmarshal([]byte(f.Gateway.Config.Value), config); err != nil {
		return wrong(object+" cannot be read: "+err.Error(), "", o.envoyGateway(f))
	}
	actual := manager(config.EnvoyGatewaySpec, o.ExtensionNamespace)
	if actual == nil {
		return wrong(fmt.Sprintf("Envoy Gateway does not have our values: %s names no extension at the Service %s/%s, port 5005", object, o.ExtensionNamespace, charts.Extension),
			"It serves no route to our kinds, and applies no TailscaleRoutePolicy.", o.envoyGateway(f))
	}
	want, err := wanted()
	if err != nil {
		return broken(err)
	}
	faults := compare(actual, want, o.EnvoyGatewayNamespace, o.ExtensionNamespace)
	if len(faults) > 0 {
		impact := ""
		if actual.FailOpen {
			impact = "failOpen drops every Deny, and lets clients forge identity headers, when the extension returns an error."
		}
		return wrong("Envoy Gateway does not have our values: "+strings.Join(faults, "; "), impact, o.envoyGateway(f))
	}
	return right("values of Envoy Gateway")
}

// wanted returns the extension's configuration in the values for Envoy Gateway.
func wanted() (*egv1a1.ExtensionManager, error) {
	v := struct {
		Config struct {
			EnvoyGateway egv1a1.EnvoyGatewaySpec `json:"envoyGateway"`
		} `json:"config"`
	}{}
	if err := yaml.Unmarshal(envoygateway.Values, &v); err != nil {
		return nil, errors.Wrap(err, "cannot parse values for Envoy Gateway")
	}
	if v.Config.EnvoyGateway.ExtensionManager == nil {
		return nil, errors.New("values for Envoy Gateway name no extension")
	}
	return v.Config.EnvoyGateway.ExtensionManager, nil
}

// manager returns the extension manager that leads to the extension's Service, or nil.
func manager(s egv1a1.EnvoyGatewaySpec, namespace string) *egv1a1.ExtensionManager {
	all := slices.Clone(s.ExtensionManagers)
	if s.ExtensionManager != nil {
		all = append(all, *s.ExtensionManager)
	}
	name := charts.Extension + "." + namespace
	for i := range all {
		m := &all[i]
		if m.Service == nil || m.Service.FQDN == nil || m.Service.FQDN.Port != 5005 {
			continue
		}
		if host := m.Service.FQDN.Hostname; host == name || strings.HasPrefix(host, name+".svc") {
			return m
		}
	}
	return nil
}

// compare returns what the configuration of Envoy Gateway lacks of the expected one.
func compare(actual, want *egv1a1.ExtensionManager, gatewayNamespace, extensionNamespace string) []string {
	var out []string
	require := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	for _, k := range want.BackendResources {
		require(slices.Contains(actual.BackendResources, k), "backendResources lacks %s", k.Kind)
	}
	for _, k := range want.PolicyResources {
		require(slices.Contains(actual.PolicyResources, k), "policyResources lacks %s", k.Kind)
	}
	require(includesAll(actual), "the hook Translation does not include all listeners, routes, clusters and secrets")
	require(actual.MaxMessageSize != nil && actual.MaxMessageSize.Cmp(*want.MaxMessageSize) >= 0, "maxMessageSize is less than %s", want.MaxMessageSize)
	require(!actual.FailOpen, "failOpen is true")
	require(trusts(actual.Service.TLS, gatewayNamespace, extensionNamespace), "tls.certificateRef is not the Secret %s/%s-ca", extensionNamespace, charts.Extension)
	require(presents(actual.Service.TLS, gatewayNamespace, extensionNamespace), "tls.clientCertificateRef is not the Secret %s/%s-client", extensionNamespace, charts.Extension)
	return out
}

func includesAll(m *egv1a1.ExtensionManager) bool {
	if m.Hooks == nil || m.Hooks.XDSTranslator == nil || !slices.Contains(m.Hooks.XDSTranslator.Post, egv1a1.XDSTranslation) {
		return false
	}
	t := m.Hooks.XDSTranslator.Translation
	// Clusters and secrets are included unless somebody says otherwise.
	enabled := func(b *bool, or bool) bool { return (b == nil && or) || (b != nil && *b) }
	return t != nil && t.Listener != nil && enabled(t.Listener.IncludeAll, false) && t.Route != nil && enabled(t.Route.IncludeAll, false) &&
		(t.Cluster == nil || enabled(t.Cluster.IncludeAll, true)) && (t.Secret == nil || enabled(t.Secret.IncludeAll, true))
}

// trusts reports whether Envoy Gateway knows the extension by the Secret that its chart makes.
func trusts(tls *egv1a1.ExtensionTLS, gatewayNamespace, extensionNamespace string) bool {
	return tls != nil && names(tls.CertificateRef, gatewayNamespace, charts.Extension+"-ca", extensionNamespace)
}

// presents reports whether the extension knows Envoy Gateway by the Secret that its chart makes.
func presents(tls *egv1a1.ExtensionTLS, gatewayNamespace, extensionNamespace string) bool {
	return tls != nil && tls.ClientCertificateRef != nil && names(*tls.ClientCertificateRef, gatewayNamespace, charts.Extension+"-client", extensionNamespace)
}

// names reports whether a reference from one namespace is to a Secret of another.
func names(r gwapiv1.SecretObjectReference, namespace, name, secretNamespace string) bool {
	if r.Namespace != nil && *r.Namespace != "" {
		namespace = string(*r.Namespace)
	}
	return string(r.Name) == name && namespace == secretNamespace
}
