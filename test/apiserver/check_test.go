//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// reviewer may read all that a check reads, and ask what service accounts may do.
const reviewer = "reviewer"

// TestCheck checks a complete installation with an administrator, with a user who may only read it, and with one who
// may read nothing.
func TestCheck(t *testing.T) {
	r := newRealm(t)
	r.crossplane()
	r.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reviewer}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"pods", "configmaps", "secrets", "namespaces", "services"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"list"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
			{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"httproutes", "grpcroutes"}, Verbs: []string{"list"}},
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"get"}},
			{APIGroups: []string{"pkg.crossplane.io", "apiextensions.crossplane.io", "gateway.tailscale.com", "tailnet.gateway.tailscale.com"}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{"list"}},
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}},
			{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles"}, Verbs: []string{"get"}},
			{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, Verbs: []string{"get"}},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: reviewer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reviewer},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: reviewer}},
		})
	check := func(args ...string) (int, string) {
		out, errs := &bytes.Buffer{}, &bytes.Buffer{}
		code := plugin.Run(t.Context(), append([]string{"--kubeconfig=" + r.kubeconfig, "check", "--no-objects"}, args...), out, errs)
		if errs.Len() > 0 {
			t.Fatalf("check %v: %s", args, errs)
		}
		return code, out.String()
	}
	for _, args := range [][]string{nil, {"--as=" + reviewer}} {
		r.eventually("check finds nothing", func() error {
			if code, out := check(args...); code != plugin.ExitNone {
				return errors.Errorf("check %v: code %d:\n%s", args, code, out)
			}
			return nil
		})
	}
	code, out := check("--as=" + builtin)
	if code != plugin.ExitFailed || strings.Contains(out, "Wrong") || strings.Contains(out, "OK       Crossplane") || !strings.Contains(out, "Unknown  whether Crossplane runs: ") {
		t.Errorf("a user without rights: code %d:\n%s", code, out)
	}

	if err := r.admin.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "tailscale-gateway:provider"}}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the provider lacks its role", func() error {
		if code, out := check(); code != plugin.ExitFound || !strings.HasPrefix(out, "Wrong    The provider (crossplane-system/provider-tailscale) lacks ") || strings.Count(out, "\n") > 10 {
			return errors.Errorf("check: code %d:\n%s", code, out)
		}
		return nil
	})
	if err := r.admin.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: kustomization.PolicyInternalKinds}}); err != nil {
		t.Fatal(err)
	}
	if _, out := check(); !strings.Contains(out, "ValidatingAdmissionPolicyBinding tailscale-gateway-internal-kinds does not exist") || !strings.Contains(out, "admission.enabled=true") {
		t.Errorf("want the binding to be missing:\n%s", out)
	}
	if _, out := check("--no-admission"); strings.Contains(out, "ValidatingAdmissionPolicy") {
		t.Errorf("want no word of admission policies:\n%s", out)
	}
}

// crossplane creates what Crossplane and its packages would have created: nothing of it runs here.
func (r *realm) crossplane() {
	r.Helper()
	for _, k := range []struct{ group, version, kind, plural string }{
		{"pkg.crossplane.io", "v1", "Provider", "providers"}, {"pkg.crossplane.io", "v1", "Function", "functions"}, {"pkg.crossplane.io", "v1", "Configuration", "configurations"},
		{"apiextensions.crossplane.io", "v1", "CompositeResourceDefinition", "compositeresourcedefinitions"}, {"apiextensions.crossplane.io", "v1", "Composition", "compositions"},
	} {
		r.create(loose(r, k.group, k.version, k.kind, k.plural))
	}
	r.eventually("kinds of Crossplane are served", func() error {
		for _, p := range products.Packages(products.FlavourNamespaced) {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": products.Image(p.Name, "v0.1.0")}}}
			o.SetAPIVersion("pkg.crossplane.io/v1")
			o.SetKind(strings.ToUpper(string(p.Kind[:1])) + string(p.Kind[1:]))
			o.SetName(products.Object(p.Name))
			if err := r.settle(o, "Installed", "Healthy"); err != nil {
				return err
			}
		}
		files, err := configuration.Files()
		if err != nil {
			return err
		}
		for path, b := range files {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(b, &o.Object); err != nil {
				return err
			}
			if !strings.HasPrefix(path, "xrds/") && !strings.HasPrefix(path, "compositions/") {
				continue
			}
			o.SetAPIVersion("apiextensions.crossplane.io/v1")
			if err := r.settle(o, "Established"); err != nil {
				return err
			}
		}
		return nil
	})
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: apiserver.CrossplaneNamespace, Name: "crossplane", Labels: map[string]string{"app.kubernetes.io/version": "2.4.0"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "crossplane"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "crossplane"}},
				Spec:       corev1.PodSpec{ServiceAccountName: apiserver.AccountCrossplane, Containers: []corev1.Container{{Name: "crossplane", Image: "crossplane"}}},
			},
		},
	}
	r.create(d)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.GetGeneration(), Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := r.admin.Status().Update(r.Context(), d); err != nil {
		r.Fatal(err)
	}
}

// settle creates an object if it does not exist, and sets its conditions to True.
func (r *realm) settle(o *unstructured.Unstructured, conditions ...string) error {
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c, "status": "True", "reason": "Test", "lastTransitionTime": time.Unix(0, 0).UTC().Format(time.RFC3339)})
	}
	o.Object["status"] = map[string]any{"conditions": list}
	return client.IgnoreAlreadyExists(r.admin.Create(r.Context(), o))
}

// loose returns a CRD with any fields and without a subresource for its status.
func loose(r *realm, group, version, kind, plural string) client.Object {
	r.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		r.Fatal(err)
	}
	return &unstructured.Unstructured{Object: u}
}
