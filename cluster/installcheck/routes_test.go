// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	envoygateway "github.com/tailscale-gateway/tailscale-gateway/package/envoy-gateway"
)

const egNamespace = "envoy-gateway-system"

// config is the ConfigMap that our values lead to, with changes.
func config(t *testing.T, change func(manager map[string]any)) *corev1.ConfigMap {
	t.Helper()
	v := struct {
		Config struct {
			EnvoyGateway map[string]any `json:"envoyGateway"`
		} `json:"config"`
	}{}
	if err := yaml.Unmarshal(envoygateway.Values, &v); err != nil {
		t.Fatal(err)
	}
	change(v.Config.EnvoyGateway["extensionManager"].(map[string]any))
	b, err := json.Marshal(v.Config.EnvoyGateway)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: egNamespace, Name: envoyGatewayConfig},
		Data:       map[string]string{configKey: string(b)},
	}
}

func deployment(name string, available int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: egNamespace, Name: name, Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, AvailableReplicas: available},
	}
}

func secret(name string, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: egNamespace, Name: name}, Data: map[string][]byte{}}
	for _, k := range keys {
		s.Data[k] = []byte("PEM")
	}
	return s
}

// served is all that the extension watches, except for some.
func served(t *testing.T, excluded ...string) []*metav1.APIResourceList {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if err := yaml.Unmarshal(charts.ExtensionRules, &rules); err != nil {
		t.Fatal(err)
	}
	skip := map[string]bool{}
	for _, w := range excluded {
		skip[w] = true
	}
	var out []*metav1.APIResourceList
	for _, r := range rules {
		for _, g := range r.APIGroups {
			l := &metav1.APIResourceList{GroupVersion: strings.TrimPrefix(g+"/v1", "/")}
			for _, res := range r.Resources {
				if !skip[res] {
					l.APIResources = append(l.APIResources, metav1.APIResource{Name: res})
				}
			}
			out = append(out, l)
		}
	}
	return out
}

func TestCheckRoutes(t *testing.T) {
	same := func(map[string]any) {}
	ca, tls := secret(charts.Extension+"-ca", "tls.crt"), secret(charts.Extension+"-tls", "ca.crt", "tls.crt", "tls.key")
	client, envoy := secret(charts.Extension+"-client", "ca.crt", "tls.crt", "tls.key"), secret(charts.Extension+"-envoy", "ca.crt", "tls.crt", "tls.key")
	whole := func(t *testing.T) []runtime.Object {
		t.Helper()
		return []runtime.Object{ca, tls, client, envoy, deployment(charts.Extension, 2), deployment(envoyGateway, 2), config(t, same)}
	}

	type want struct {
		err     error
		missing []string
		fix     string
	}
	cases := map[string]struct {
		reason   string
		objects  func(*testing.T) []runtime.Object
		excluded []string
		denied   func(account string, a authv1.ResourceAttributes) bool
		want     want
	}{
		"Complete": {
			reason:  "A cluster as our values make it passes.",
			objects: whole,
		},
		"Nothing": {
			reason:  "Missing components are reported in the order of installation.",
			objects: func(*testing.T) []runtime.Object { return nil },
			want: want{err: cmpopts.AnyError, missing: []string{
				"missing  Secret envoy-gateway-system/tailscale-gateway-extension-ca with tls.crt",
				"missing  Secret envoy-gateway-system/tailscale-gateway-extension-tls with tls.crt, tls.key, ca.crt",
				"missing  Secret envoy-gateway-system/tailscale-gateway-extension-client with tls.crt, tls.key, ca.crt",
				"missing  Secret envoy-gateway-system/tailscale-gateway-extension-envoy with tls.crt, tls.key, ca.crt",
				"missing  Deployment envoy-gateway-system/tailscale-gateway-extension is ready",
				"missing  Envoy Gateway asks the Service envoy-gateway-system/tailscale-gateway-extension, port 5005",
				"missing  Deployment envoy-gateway-system/envoy-gateway is ready",
			}, fix: "helm upgrade --install tailscale-gateway-extension"},
		},
		"NoCertificates": {
			reason: "The chart's CronJob creates missing Secrets; another upgrade with the same Job would not.",
			objects: func(t *testing.T) []runtime.Object {
				t.Helper()
				return append(slices.Delete(whole(t), 2, 3), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: egNamespace, Name: charts.Extension + "-certificates"}})
			},
			want: want{err: cmpopts.AnyError, missing: []string{
				"missing  Secret envoy-gateway-system/tailscale-gateway-extension-client with tls.crt, tls.key, ca.crt",
			}, fix: "kubectl create job certificates --from=cronjob/tailscale-gateway-extension-certificates"},
		},
		"NoCRD": {
			reason:   "A kind that nobody defines is named, with what defines it.",
			objects:  whole,
			excluded: []string{"tailscaleservices", "grpcroutes"},
			want: want{err: cmpopts.AnyError, missing: []string{
				"missing  The API server knows grpcroutes.gateway.networking.k8s.io",
				"missing  The API server knows tailscaleservices.gateway.tailscale.com",
			}, fix: "make install"},
		},
		"EnvoyGatewayMayNot": {
			reason:  "Envoy Gateway does not become ready without its role.",
			objects: whole,
			denied: func(account string, a authv1.ResourceAttributes) bool {
				return account == envoyGateway && a.Resource == "tailscaleservices" && a.Verb == "watch"
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Envoy Gateway may watch tailscaleservices.gateway.tailscale.com"}, fix: "helm upgrade --install tailscale-gateway-extension"},
		},
		"ExtensionMayNot": {
			reason:  "Nor does the extension without its own.",
			objects: whole,
			denied: func(account string, a authv1.ResourceAttributes) bool {
				return account == charts.Extension && a.Resource == "endpointslices" && a.Verb == "list"
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  The extension may list endpointslices.discovery.k8s.io"}},
		},
		"NotReady": {
			reason: "For pods that do not run, kubectl shows more.",
			objects: func(t *testing.T) []runtime.Object {
				t.Helper()
				return []runtime.Object{ca, tls, client, envoy, deployment(charts.Extension, 1), deployment(envoyGateway, 2), config(t, same)}
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Deployment envoy-gateway-system/tailscale-gateway-extension is ready"}, fix: "kubectl describe pods --namespace envoy-gateway-system --selector app=tailscale-gateway-extension"},
		},
		"HalfASecret": {
			reason: "A Secret without its key serves nobody.",
			objects: func(t *testing.T) []runtime.Object {
				t.Helper()
				return []runtime.Object{ca, secret(charts.Extension+"-tls", "tls.crt", "ca.crt"), client, envoy, deployment(charts.Extension, 2), deployment(envoyGateway, 2), config(t, same)}
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Secret envoy-gateway-system/tailscale-gateway-extension-tls with tls.crt, tls.key, ca.crt"}},
		},
		"OtherExtension": {
			reason: "An Envoy Gateway that asks another extension does not ask us.",
			objects: func(t *testing.T) []runtime.Object {
				t.Helper()
				return []runtime.Object{ca, tls, client, envoy, deployment(charts.Extension, 2), deployment(envoyGateway, 2), config(t, func(m map[string]any) {
					m["service"] = map[string]any{"fqdn": map[string]any{"hostname": "other.envoy-gateway-system.svc", "port": 5005}}
				})}
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Envoy Gateway asks the Service envoy-gateway-system/tailscale-gateway-extension, port 5005"}},
		},
		"OldConfig": {
			reason: "Each missing setting of Envoy Gateway is listed.",
			objects: func(t *testing.T) []runtime.Object {
				t.Helper()
				return []runtime.Object{ca, tls, client, envoy, deployment(charts.Extension, 2), deployment(envoyGateway, 2), config(t, func(m map[string]any) {
					m["backendResources"] = m["backendResources"].([]any)[1:]
					m["maxMessageSize"] = "4Mi"
					m["failOpen"] = true
					m["hooks"] = map[string]any{"xdsTranslator": map[string]any{"post": []any{"Translation"}}}
					m["service"].(map[string]any)["tls"] = map[string]any{"certificateRef": map[string]any{"name": "mine"}}
				})}
			},
			want: want{err: cmpopts.AnyError, missing: []string{
				"missing  Envoy Gateway knows TailscaleServices as a kind of backends",
				"missing  Envoy Gateway's hook Translation includes all listeners, routes, clusters and secrets",
				"missing  Envoy Gateway's maxMessageSize is 256Mi or more",
				"missing  Envoy Gateway's failOpen is false: true drops every Deny and lets clients forge identity headers when the extension returns an error",
				"missing  Envoy Gateway checks the extension's certificate by the Secret envoy-gateway-system/tailscale-gateway-extension-ca",
				"missing  Envoy Gateway presents the certificate of the Secret envoy-gateway-system/tailscale-gateway-extension-client",
			}, fix: "--values package/envoy-gateway/values.yaml"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(tc.objects(t)...)
			kube.Discovery().(*fakediscovery.FakeDiscovery).Resources = served(t, tc.excluded...)
			kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				r := a.(clienttesting.CreateAction).GetObject().(*authv1.SubjectAccessReview).DeepCopy()
				_, account, _ := strings.Cut(strings.TrimPrefix(r.Spec.User, "system:serviceaccount:"), ":")
				r.Status.Allowed = tc.denied == nil || !tc.denied(account, *r.Spec.ResourceAttributes)
				return true, r, nil
			})
			out := &bytes.Buffer{}
			r := &report{out: out}
			err := checkRoutes(t.Context(), kube, egNamespace, egNamespace, r)
			if err == nil {
				err = r.result()
			}
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\ncheckRoutes(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			var missing []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "missing") {
					missing = append(missing, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tc.want.missing, missing); diff != "" {
				t.Errorf("%s\ncheckRoutes(...): -want missing, +got missing:\n%s", tc.reason, diff)
			}
			if !strings.Contains(out.String(), tc.want.fix) {
				t.Errorf("%s\ncheckRoutes(...): does not say %q:\n%s", tc.reason, tc.want.fix, out)
			}
		})
	}
}
