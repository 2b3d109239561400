// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/reach"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// TestPages reads a list of an API server in pages. A page must not change those before it.
func TestPages(t *testing.T) {
	const pods = 5
	var limits []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		case "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list"]}]}`))
		default:
			limits = append(limits, r.URL.Query().Get("limit"))
			first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			l := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
			for n := first; n < min(first+2, pods); n++ {
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strconv.Itoa(n)}}
				if n == 0 {
					p.Labels = map[string]string{"first": "true"}
				}
				l.Items = append(l.Items, p)
			}
			if first+2 < pods {
				l.Continue = strconv.Itoa(first + 2)
			}
			_ = json.NewEncoder(w).Encode(l)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: '%s'}}], contexts: [{name: a, context: {cluster: a}}]}", server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	kube, err := connect(kubeFlags{Kubeconfig: path, RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	want := []string{"0 map[first:true]", "1 map[]", "2 map[]", "3 map[]", "4 map[]"}
	describe := func(o client.Object) string { return fmt.Sprintf("%s %v", o.GetName(), o.GetLabels()) }
	reads := map[string]func() ([]string, error){
		"Typed": func() ([]string, error) {
			var all []corev1.Pod
			err := pageOf(t.Context(), kube, func() *corev1.PodList { return &corev1.PodList{} }, func(l *corev1.PodList) { all = append(all, l.Items...) })
			var out []string
			for n := range all {
				out = append(out, describe(&all[n]))
			}
			return out, err
		},
		"Metadata": func() ([]string, error) {
			all, err := (&reader{ctx: t.Context(), kube: kube}).metadata(gvk)
			var out []string
			for n := range all {
				out = append(out, describe(&all[n]))
			}
			return out, err
		},
		"Unstructured": func() ([]string, error) {
			var out []string
			err := page(t.Context(), kube, gvk, func(u *unstructured.Unstructured) { out = append(out, describe(u)) })
			return out, err
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			got, err := read()
			if diff := gocmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v: -want, +got:\n%s", err, diff)
			}
		})
	}
	if slices.Contains(limits, "") {
		t.Errorf("a list without a limit: %q", limits)
	}
}

// TestPods reads the pods that work for us, with their images, and what NetworkPolicies are evaluated with.
func TestPods(t *testing.T) {
	pod := func(namespace, name string, labels map[string]string, change func(*corev1.Pod), containers ...corev1.Container) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{Containers: containers}}
		if change != nil {
			change(p)
		}
		return p
	}
	proxyLabels := func(name string) map[string]string {
		return map[string]string{meta.LabelEndpoints: "web", "statefulset.kubernetes.io/pod-name": name}
	}
	agent := corev1.Container{Name: proxy.ContainerAgent, Image: "ghcr.io/tailscale-gateway/agent:v0.1.0"}
	sidecar := corev1.Container{Name: "other", Image: "example.com/agent:v7"}
	w := newWorld(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
		pod("crossplane-system", "crossplane", nil, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "crossplane" }),
		pod("crossplane-system", "rbac", nil, func(p *corev1.Pod) { p.Spec.ServiceAccountName = "rbac-manager" }),
		pod("crossplane-system", "provider", map[string]string{"pkg.crossplane.io/provider": "ours"}, nil, corev1.Container{Name: containerPackage, Image: "ghcr.io/tailscale-gateway/provider-tailscale:v0.1.0"}),
		pod("crossplane-system", "others", map[string]string{"pkg.crossplane.io/provider": "others"}, nil, corev1.Container{Name: containerPackage, Image: "example.com/provider:v1"}),
		pod("shop", "web-0", proxyLabels("web-0"), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: proxy.ContainerAgent, ImageID: "ghcr.io/tailscale-gateway/agent@sha256:ab"}}
		}, agent, sidecar),
		pod("shop", "web-1", proxyLabels("web-1"), nil, agent),
		pod("shop", "web-2", proxyLabels("web-2"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, agent),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deny"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.10"}}}, Ports: []discoveryv1.EndpointPort{{Port: new(int32(6443))}},
		})
	r := &reader{ctx: t.Context(), kube: w.kube, options: check.Options{CrossplaneNamespace: "crossplane-system", CrossplaneAccount: "crossplane"}}
	f := check.Facts{Packages: check.Answer[map[string]check.Package]{Value: map[string]check.Package{products.Provider: {Kind: "provider", Name: "ours"}}}}
	got := r.pods(f)
	names := map[check.Role][]string{}
	for role, pods := range got.roles {
		for _, p := range pods {
			names[role] = append(names[role], p.Name)
		}
	}
	want := map[check.Role][]string{check.RoleCrossplane: {"crossplane"}, check.RoleProvider: {"provider"}, check.RoleProxy: {"web-0"}}
	if diff := gocmp.Diff(want, names); diff != "" || got.unknown != "" {
		t.Errorf("pods(...): %q, -want, +got:\n%s", got.unknown, diff)
	}
	if l := got.roles[check.RoleProxy][0].NamespaceLabels; l["team"] != "shop" {
		t.Errorf("pods(...): labels of the namespace: %v", l)
	}
	images := []check.Image{
		{Pod: "crossplane-system/provider", Reference: "ghcr.io/tailscale-gateway/provider-tailscale:v0.1.0"},
		{Pod: "shop/web-0", Reference: agent.Image, Digest: "sha256:ab"}, {Pod: "shop/web-1", Reference: agent.Image},
	}
	slices.SortFunc(got.images.Value, func(a, b check.Image) int { return cmp.Compare(a.Pod, b.Pod) })
	if diff := gocmp.Diff(check.Answer[[]check.Image]{Value: images}, got.images); diff != "" {
		t.Errorf("pods(...): images: -want, +got:\n%s", diff)
	}
	n := r.network(f, got)
	if len(n.Policies.Value) != 1 || len(n.API.Value) != 1 || n.API.Value[0].String() != "192.168.0.10:6443" || n.APIService.String() != "10.96.0.1:443" {
		t.Errorf("network(...): %+v", n)
	}
	w.deny = "Pod"
	got = r.pods(f)
	if got.unknown == "" || got.images.Unknown == "" || len(got.roles[check.RoleProxy]) > 0 {
		t.Errorf("pods(...) without the right to list: %+v", got)
	}
	if n := r.network(f, got); n.Pods.Unknown == "" {
		t.Errorf("network(...) without pods: %+v", n)
	}
}

// TestSets checks that pods of a StatefulSet are one set, and that pods with other labels are not.
func TestSets(t *testing.T) {
	pod := func(labels map[string]string) reach.Pod { return reach.Pod{Namespace: "shop", Labels: labels} }
	a := setOf(check.RoleProxy, pod(map[string]string{"app": "a", "pod-template-hash": "1"}))
	if b := setOf(check.RoleProxy, pod(map[string]string{"app": "a", "pod-template-hash": "2"})); a != b {
		t.Errorf("setOf(...): %q and %q differ", a, b)
	}
	if b := setOf(check.RoleProxy, pod(map[string]string{"app": "b"})); a == b {
		t.Errorf("setOf(...): %q for two sets", a)
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(j); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUsages(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	attachment := func(name, endpoints, dns, created string) string {
		return fmt.Sprintf("{apiVersion: tailnet.gateway.tailscale.com/v1alpha1, kind: ServiceAttachment, metadata: {namespace: shop, name: %s, creationTimestamp: '%s'}, spec: {endpoints: %s, dnsName: %s}}", name, created, endpoints, dns)
	}
	used := newUsages(at)
	for _, manifest := range []string{
		"{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleEndpoints, metadata: {namespace: shop, name: web}, status: {egressTargets: [{}, {}], discoveredEndpoints: [{}]}}",
		"{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleEndpoints, metadata: {namespace: shop, name: odd}, status: {egressTargets: many, discoveredEndpoints: {}}}",
		"{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleServices, metadata: {namespace: shop, name: web}, status: {discoveredServices: [{}]}}",
		"{apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleGateway, metadata: {namespace: shop, name: web}, status: {tailnetStatus: [odd, {discoveredServices: 3, splitDNS: {domains: [a, b]}}, {discoveredServices: 7}]}}",
		"{apiVersion: tailnet.gateway.tailscale.com/v1alpha1, kind: GatewayReport, metadata: {namespace: shop, name: web}, spec: {routes: [{}], generatedRoutes: [{}, {}]}}",
		attachment("a", "web", "a.tail1.ts.net.", "2026-11-27T12:00:00Z"), attachment("a2", "web", "a.tail1.ts.net", "2026-11-27T12:00:00Z"),
		attachment("b", "web", "b.tail1.ts.net.", "2026-11-21T11:00:00Z"), attachment("c", "web", "''", "2026-11-27T12:00:00Z"),
	} {
		used.add(object(t, manifest))
	}
	want := []check.Usage{
		{Object: "TailscaleEndpoints shop/web", Limit: check.LimitTargets, Count: 2}, {Object: "TailscaleEndpoints shop/web", Limit: check.LimitDiscovered, Count: 1},
		{Object: "TailscaleServices shop/web", Limit: check.LimitListed, Count: 1},
		{Object: "TailscaleGateway shop/web", Limit: check.LimitDiscovered, Count: 7}, {Object: "TailscaleGateway shop/web", Limit: check.LimitHostnames, Count: 2},
		{Object: "GatewayReport shop/web", Limit: check.LimitRoutes, Count: 1}, {Object: "GatewayReport shop/web", Limit: check.LimitGeneratedRoutes, Count: 2},
		{Object: "TailscaleEndpoints shop/web", Limit: check.LimitCertificates, Count: 2}, {Object: "tailnet tail1.ts.net", Limit: check.LimitNewCertificates, Count: 1},
	}
	got := used.all(nil)
	for _, l := range [][]check.Usage{want, got} {
		slices.SortFunc(l, func(a, b check.Usage) int {
			return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Limit, b.Limit))
		})
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("all(...): -want, +got:\n%s", diff)
	}
}

func TestRouteOf(t *testing.T) {
	const status = "status: {parents: [{controllerName: gateway.envoyproxy.io/gatewayclass-controller, conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, status: 'False', reason: BackendNotFound, message: not found, observedGeneration: 2, lastTransitionTime: '2026-11-28T12:00:00Z'}]}]}"
	head := "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {namespace: shop, name: web, generation: 2, creationTimestamp: '2026-11-27T12:00:00Z'}\n"
	ours := "spec: {rules: [{backendRefs: [{name: web}]}, {backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web}]}]}\n"
	want := check.Route{
		Reference: causes.Reference{Kind: "GRPCRoute", Namespace: "shop", Name: "web"}, Created: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC),
		References: []check.ResolvedReferences{{
			Controller: "gateway.envoyproxy.io/gatewayclass-controller", Status: "False", Reason: "BackendNotFound", Message: "not found", Current: true, Changed: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC),
		}},
	}
	got, ok := routeOf(object(t, head+ours+status))
	got.Created, got.References[0].Changed = got.Created.UTC(), got.References[0].Changed.UTC()
	if diff := gocmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("routeOf(...): %t, -want, +got:\n%s", ok, diff)
	}
	for name, spec := range map[string]string{"Others": "spec: {rules: [{backendRefs: [{name: web}]}]}\n", "None": "", "Odd": "spec: {rules: all}\n"} {
		if _, ok := routeOf(object(t, head+spec+status)); ok {
			t.Errorf("%s: routeOf(...): a route without a backend of ours counts", name)
		}
	}
}

// TestRelease checks that what users write into annotations is no part of a command, unless it is a name.
func TestRelease(t *testing.T) {
	cases := map[string]struct {
		reason          string
		name, namespace string
		want            bool
	}{
		"Helm":      {reason: "Helm writes names.", name: "eg", namespace: "envoy-gateway-system", want: true},
		"Flag":      {reason: "A flag is no name.", name: "--post-renderer=/tmp/x", namespace: "envoy-gateway-system"},
		"Namespace": {reason: "Nor is one a namespace.", name: "eg", namespace: "--kubeconfig=/tmp/x"},
		"Without":   {reason: "Without annotations there is no release."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &reader{}
			r.release("chart", &metav1.ObjectMeta{Annotations: map[string]string{check.AnnotationRelease: tc.name, annotationReleaseNamespace: tc.namespace}})
			if _, ok := r.releases["chart"]; ok != tc.want {
				t.Errorf("%s\nrelease(...): %+v", tc.reason, r.releases)
			}
		})
	}
}
