// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	envoygateway "github.com/tailscale-gateway/tailscale-gateway/package/envoy-gateway"
)

const (
	// Names in Envoy Gateway's own chart.
	envoyGateway       = "envoy-gateway"
	envoyGatewayConfig = "envoy-gateway-config"
	configKey          = "envoy-gateway.yaml"
)

// checkRoutes checks what routes need that name our kinds.
func checkRoutes(ctx context.Context, kube kubernetes.Interface, gatewayNamespace, extensionNamespace string, r *report) error {
	chart := fmt.Sprintf("helm upgrade --install %s package/charts/%s --namespace %s --create-namespace", charts.Extension, charts.Extension, extensionNamespace)
	values := fmt.Sprintf("helm upgrade --install eg oci://docker.io/envoyproxy/gateway-helm --version v1.9.1 --namespace %s --values package/envoy-gateway/values.yaml", gatewayNamespace)

	var watched, granted []rbacv1.PolicyRule
	for _, source := range []struct {
		rules  []byte
		target *[]rbacv1.PolicyRule
	}{{charts.ExtensionRules, &watched}, {charts.EnvoyGateway, &granted}} {
		if err := yaml.Unmarshal(source.rules, source.target); err != nil {
			return errors.Wrap(err, "cannot parse rules of the chart")
		}
	}

	if err := checkServed(kube.Discovery(), watched, values, r); err != nil {
		return err
	}
	if err := checkPermissions(ctx, kube, gatewayNamespace, envoyGateway, "Envoy Gateway", single(granted), chart, r); err != nil {
		return err
	}
	if err := checkPermissions(ctx, kube, extensionNamespace, charts.Extension, "The extension", single(watched), chart, r); err != nil {
		return err
	}
	certificates, err := certificatesFix(ctx, kube, extensionNamespace, chart)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		keys []string
	}{
		{name: charts.Extension + "-ca", keys: []string{corev1.TLSCertKey}},
		{name: charts.Extension + "-tls", keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"}},
		{name: charts.Extension + "-client", keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"}},
		{name: charts.Extension + "-envoy", keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"}},
	} {
		if err := checkSecret(ctx, kube, extensionNamespace, s.name, s.keys, certificates, r); err != nil {
			return err
		}
	}
	if err := checkDeployment(ctx, kube, extensionNamespace, charts.Extension, chart, r); err != nil {
		return err
	}
	if err := checkConfig(ctx, kube, gatewayNamespace, extensionNamespace, values, r); err != nil {
		return err
	}
	return checkDeployment(ctx, kube, gatewayNamespace, envoyGateway, values, r)
}

// checkServed checks that the API server knows each kind that the extension watches.
// The extension starts without them, but Envoy Gateway looks for ours once alone.
func checkServed(d discovery.DiscoveryInterface, rules []rbacv1.PolicyRule, values string, r *report) error {
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return errors.Wrap(err, "cannot list what the API server serves")
	}
	served := map[string]bool{}
	for _, l := range lists {
		group, _, ok := strings.Cut(l.GroupVersion, "/")
		if !ok {
			group = ""
		}
		for _, res := range l.APIResources {
			served[group+"/"+res.Name] = true
		}
	}
	for _, rule := range rules {
		for _, g := range rule.APIGroups {
			fix := "make install: our configuration brings it. Restart Envoy Gateway after it: kubectl rollout restart deployment -l control-plane=envoy-gateway -A"
			switch {
			case g == gatewayv1alpha1.Group && slices.Contains(rule.Verbs, "create"):
				fix = "Install or upgrade the chart " + charts.Extension + " with crds.enabled=true"
			case g == "gateway.networking.k8s.io" || g == "gateway.envoyproxy.io":
				fix = values
			}
			for _, res := range rule.Resources {
				if strings.Contains(res, "/") {
					continue
				}
				if err := r.add(served[g+"/"+res], fmt.Sprintf("The API server knows %s", resource(authv1.ResourceAttributes{Group: g, Resource: res})), fix); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// certificatesFix returns the command that creates the extension's Secrets: the chart's CronJob
// does, if there is one, and otherwise the chart.
func certificatesFix(ctx context.Context, kube kubernetes.Interface, namespace, chart string) (string, error) {
	name := charts.Extension + "-certificates"
	_, err := kube.BatchV1().CronJobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return chart, nil
	}
	if err != nil {
		return "", errors.Wrapf(err, "cannot look up CronJob %s/%s", namespace, name)
	}
	return fmt.Sprintf("kubectl create job certificates --from=cronjob/%s --namespace %s; kubectl logs --selector app.kubernetes.io/name=%s --namespace %s", name, namespace, name, namespace), nil
}

func checkSecret(ctx context.Context, kube kubernetes.Interface, namespace, name string, keys []string, fix string, r *report) error {
	s, err := kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !kerrors.IsNotFound(err) {
		return errors.Wrapf(err, "cannot look up Secret %s/%s", namespace, name)
	}
	present := func(key string) bool { return len(s.Data[key]) > 0 }
	ok := err == nil && !slices.ContainsFunc(keys, func(key string) bool { return !present(key) })
	return r.add(ok, fmt.Sprintf("Secret %s/%s with %s", namespace, name, strings.Join(keys, ", ")), fix)
}

func checkDeployment(ctx context.Context, kube kubernetes.Interface, namespace, name, install string, r *report) error {
	requirement := fmt.Sprintf("Deployment %s/%s is ready", namespace, name)
	d, err := kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return r.add(false, requirement, install)
	}
	if err != nil {
		return errors.Wrapf(err, "cannot look up Deployment %s/%s", namespace, name)
	}
	// Of pods that are not ready kubectl says why.
	return r.add(ready(d), requirement, fmt.Sprintf("kubectl describe pods --namespace %s --selector %s", namespace, metav1.FormatLabelSelector(d.Spec.Selector)))
}

func ready(d *appsv1.Deployment) bool {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	return d.Status.ObservedGeneration >= d.GetGeneration() && d.Status.UpdatedReplicas >= wanted && d.Status.AvailableReplicas >= wanted
}

// checkConfig checks the configuration of Envoy Gateway for the extension.
func checkConfig(ctx context.Context, kube kubernetes.Interface, gatewayNamespace, extensionNamespace, fix string, r *report) error {
	cm, err := kube.CoreV1().ConfigMaps(gatewayNamespace).Get(ctx, envoyGatewayConfig, metav1.GetOptions{})
	if err != nil && !kerrors.IsNotFound(err) {
		return errors.Wrapf(err, "cannot look up ConfigMap %s/%s", gatewayNamespace, envoyGatewayConfig)
	}
	config := &egv1a1.EnvoyGateway{}
	if err == nil {
		if err := yaml.Unmarshal([]byte(cm.Data[configKey]), config); err != nil {
			return errors.Wrapf(err, "cannot parse ConfigMap %s/%s", gatewayNamespace, envoyGatewayConfig)
		}
	}
	ours := manager(config.EnvoyGatewaySpec, extensionNamespace)
	if err := r.add(ours != nil, fmt.Sprintf("Envoy Gateway asks the Service %s/%s, port 5005", extensionNamespace, charts.Extension), fix); err != nil || ours == nil {
		return err
	}
	want, err := wanted()
	if err != nil {
		return err
	}
	for _, c := range compare(ours, want, gatewayNamespace, extensionNamespace) {
		if err := r.add(c.ok, c.requirement, fix); err != nil {
			return err
		}
	}
	return nil
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

// A comparison is one thing that is as wanted, or is not.
type comparison struct {
	ok          bool
	requirement string
}

// compare compares the configuration of Envoy Gateway with the expected one.
func compare(actual, want *egv1a1.ExtensionManager, gatewayNamespace, extensionNamespace string) []comparison {
	var out []comparison
	for _, k := range want.BackendResources {
		out = append(out, comparison{
			ok:          slices.ContainsFunc(actual.BackendResources, func(h egv1a1.GroupVersionKind) bool { return h == k }),
			requirement: fmt.Sprintf("Envoy Gateway knows %s as a kind of backends", k.Kind),
		})
	}
	for _, k := range want.PolicyResources {
		out = append(out, comparison{
			ok:          slices.ContainsFunc(actual.PolicyResources, func(h egv1a1.GroupVersionKind) bool { return h == k }),
			requirement: fmt.Sprintf("Envoy Gateway knows %s as a kind of policies", k.Kind),
		})
	}
	return append(out,
		comparison{ok: includesAll(actual), requirement: "Envoy Gateway's hook Translation includes all listeners, routes, clusters and secrets"},
		comparison{
			ok:          actual.MaxMessageSize != nil && actual.MaxMessageSize.Cmp(*want.MaxMessageSize) >= 0,
			requirement: fmt.Sprintf("Envoy Gateway's maxMessageSize is %s or more", want.MaxMessageSize),
		},
		comparison{ok: !actual.FailOpen, requirement: "Envoy Gateway's failOpen is false: true drops every Deny and lets clients forge identity headers when the extension returns an error"},
		comparison{
			ok:          trusts(actual.Service.TLS, gatewayNamespace, extensionNamespace),
			requirement: fmt.Sprintf("Envoy Gateway checks the extension's certificate by the Secret %s/%s-ca", extensionNamespace, charts.Extension),
		},
		comparison{
			ok:          presents(actual.Service.TLS, gatewayNamespace, extensionNamespace),
			requirement: fmt.Sprintf("Envoy Gateway presents the certificate of the Secret %s/%s-client", extensionNamespace, charts.Extension),
		},
	)
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
