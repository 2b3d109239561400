// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

const providerNamespace = "crossplane-system"

// protectionScheme returns a scheme with the kinds that the protection reads and writes, and a
// mapper that has Crossplane's kinds if Crossplane is installed.
func protectionScheme(t *testing.T, crossplane bool) (*runtime.Scheme, kmeta.RESTMapper) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	m := kmeta.NewDefaultRESTMapper(nil)
	for gvk := range s.AllKnownTypes() {
		m.Add(gvk, kmeta.RESTScopeNamespace)
	}
	m.Add(v1alpha1.ClusterProviderConfigGroupVersionKind, kmeta.RESTScopeRoot)
	if !crossplane {
		return s, m
	}
	for gvk, scope := range map[schema.GroupVersionKind]kmeta.RESTScope{
		clusterUsageKind: kmeta.RESTScopeRoot,
		usageKind:        kmeta.RESTScopeNamespace,
		definitionKind:   kmeta.RESTScopeRoot,
	} {
		m.Add(gvk, scope)
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return s, m
}

// definition returns a definition that packages own, as Crossplane installs it.
func definition(gvk schema.GroupVersionKind, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	u.SetOwnerReferences(owners)
	return u
}

func owner(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name)}
}

// usagesOf returns the names of the objects that usages protect, with the usages' names.
func usagesOf(t *testing.T, kube client.Reader) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, gvk := range []schema.GroupVersionKind{clusterUsageKind, usageKind} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk)
		if err := kube.List(t.Context(), l); err != nil {
			t.Fatalf("cannot list %ss: %v", gvk.Kind, err)
		}
		for _, u := range l.Items {
			target := map[string]string{}
			for _, f := range [][]string{{"apiVersion"}, {"kind"}, {"resourceRef", "name"}} {
				v, found, err := unstructured.NestedString(u.Object, append([]string{"spec", "of"}, f...)...)
				if err != nil || !found {
					t.Fatalf("%s %s has no %v: %v", gvk.Kind, u.GetName(), f, err)
				}
				target[f[len(f)-1]] = v
			}
			if reason, _, err := unstructured.NestedString(u.Object, "spec", "reason"); err != nil || reason != protectionReason {
				t.Errorf("%s %s has the reason %q, %v", gvk.Kind, u.GetName(), reason, err)
			}
			out[gvk.Kind+" "+client.ObjectKeyFromObject(&u).String()] = target["apiVersion"] + " " + target["kind"] + " " + target["name"]
		}
	}
	return out
}

// TestProtection makes and deletes provider configs.
func TestProtection(t *testing.T) {
	s, m := protectionScheme(t, true)
	crd := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	foreign := usage(protected{apiVersion: "v1", kind: "Secret", name: "of-somebody"})
	foreign.SetLabels(nil)
	kube := fake.NewClientBuilder().WithScheme(s).WithRESTMapper(m).WithObjects(
		definition(crd, "clusterproviderconfigs.tailnet.gateway.tailscale.com",
			owner("pkg.crossplane.io/v1", "ProviderRevision", "tailscale-0123"), owner("pkg.crossplane.io/v1", "Provider", "tailscale")),
		definition(definitionKind, "tailscaleservices.gateway.tailscale.com",
			owner("pkg.crossplane.io/v1", "ConfigurationRevision", "gateway-0123"), owner("pkg.crossplane.io/v1", "Configuration", "gateway")),
		definition(definitionKind, "tailscaletailnets.gateway.tailscale.com",
			owner("pkg.crossplane.io/v1", "Configuration", "gateway"), owner("example.org/v1", "Configuration", "not-a-package")),
		definition(definitionKind, "databases.example.org", owner("pkg.crossplane.io/v1", "Configuration", "of-somebody")),
		foreign,
	).Build()
	r := &protectionReconciler{kube: kube, live: kube, namespace: providerNamespace, log: logging.NewNopLogger()}
	unprotected := map[string]string{"ClusterUsage /secret.of-somebody": "v1 Secret of-somebody"}
	full := map[string]string{
		"ClusterUsage /secret.of-somebody":                              "v1 Secret of-somebody",
		"ClusterUsage /provider.tailscale":                              "pkg.crossplane.io/v1 Provider tailscale",
		"ClusterUsage /configuration.gateway":                           "pkg.crossplane.io/v1 Configuration gateway",
		"Usage crossplane-system/configmap.tailscale-gateway-uninstall": "v1 ConfigMap tailscale-gateway-uninstall",
	}
	hook := client.ObjectKey{Namespace: providerNamespace, Name: HookName}
	cluster := clusterConfig("a")
	local := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "l"}, Spec: spec()}
	steps := []struct {
		reason string
		change func() error
		want   map[string]string
		hook   bool
	}{
		{reason: "Nothing is protected without a config.", change: func() error { return nil }, want: unprotected},
		{reason: "A config of a namespace suffices.", change: func() error { return kube.Create(t.Context(), local) }, want: full, hook: true},
		{reason: "Another config changes nothing.", change: func() error { return kube.Create(t.Context(), cluster) }, want: full, hook: true},
		{reason: "One config remains.", change: func() error { return kube.Delete(t.Context(), local) }, want: full, hook: true},
		{reason: "A usage that somebody deleted returns with the next change.", change: func() error {
			u := usage(protected{kind: "Provider", name: "tailscale"})
			return kube.Delete(t.Context(), u)
		}, want: full, hook: true},
		{reason: "Usages of others stay when the last config is gone.", change: func() error { return kube.Delete(t.Context(), cluster) }, want: unprotected},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatalf("\n%s\ncannot change: %v", step.reason, err)
		}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatalf("\n%s\nReconcile(...): %v", step.reason, err)
			}
		}
		if diff := cmp.Diff(step.want, usagesOf(t, kube)); diff != "" {
			t.Errorf("\n%s\nusages: -want, +got:\n%s", step.reason, diff)
		}
		err := kube.Get(t.Context(), hook, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || kerrors.IsNotFound(err) == step.hook {
			t.Errorf("\n%s\nwant a ConfigMap for Helm's hook: %t, got %v", step.reason, step.hook, err)
		}
	}
}

// TestProtectionFails has calls of the API server fail, or kinds be missing.
func TestProtectionFails(t *testing.T) {
	boom := errors.New("boom")
	crd := definition(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "clusterproviderconfigs.tailnet.gateway.tailscale.com",
		owner("pkg.crossplane.io/v1", "Provider", "tailscale"))
	cases := map[string]struct {
		reason     string
		crossplane bool
		failing    string // The name of an object that cannot be applied.
		want       error
	}{
		"NoCrossplane": {reason: "A provider that runs without Crossplane protects nothing."},
		"Refused":      {reason: "A usage that the provider may not write is an error.", crossplane: true, failing: "provider.tailscale", want: boom},
		"HookRefused":  {reason: "A ConfigMap that the provider may not write is an error.", crossplane: true, failing: HookName, want: boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, m := protectionScheme(t, tc.crossplane)
			kube := fake.NewClientBuilder().WithScheme(s).WithRESTMapper(m).WithObjects(clusterConfig("a"), crd).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if named, ok := o.(interface{ GetName() string }); ok && named.GetName() == tc.failing {
						return boom
					}
					return c.Apply(ctx, o, opts...)
				},
			}).Build()
			r := &protectionReconciler{kube: kube, live: kube, namespace: providerNamespace, log: logging.NewNopLogger()}
			_, err := r.Reconcile(t.Context(), reconcile.Request{})
			if !errors.Is(err, tc.want) {
				t.Errorf("\n%s\nReconcile(...): want %v, got %v", tc.reason, tc.want, err)
			}
			if err := kube.Get(t.Context(), client.ObjectKey{Namespace: providerNamespace, Name: HookName}, &corev1.ConfigMap{}); !tc.crossplane && !kerrors.IsNotFound(err) {
				t.Errorf("\n%s\nwant no ConfigMap, got %v", tc.reason, err)
			}
		})
	}
}

// TestExistenceChanged counts the events that trigger a reconcile.
func TestExistenceChanged(t *testing.T) {
	p := existenceChanged()
	old, updated := clusterConfig("a"), clusterConfig("a")
	old.ResourceVersion, updated.ResourceVersion = "1", "2"
	got := []bool{
		p.Create(event.CreateEvent{Object: updated}), p.Delete(event.DeleteEvent{Object: updated}),
		p.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: updated}), p.Update(event.UpdateEvent{ObjectOld: updated, ObjectNew: updated}),
	}
	if diff := cmp.Diff([]bool{true, true, false, true}, got); diff != "" {
		t.Errorf("create, delete, change, resync: -want, +got:\n%s", diff)
	}
}
