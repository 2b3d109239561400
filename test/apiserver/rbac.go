// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// CrossplaneNamespace is the namespace of Crossplane and the provider.
const CrossplaneNamespace = "crossplane-system"

// Service accounts in CrossplaneNamespace.
const (
	AccountCrossplane = "crossplane"
	AccountProvider   = products.Provider
)

// ClusterRoleAggregation is the controller of Kubernetes that fills aggregated roles.
const ClusterRoleAggregation = "clusterrole-aggregation-controller"

// Labels by which Crossplane's roles aggregate.
const (
	aggregateToCrossplane = "rbac.crossplane.io/aggregate-to-crossplane"
	aggregateToAdmin      = "rbac.crossplane.io/aggregate-to-admin"
	aggregateToNSAdmin    = "rbac.crossplane.io/aggregate-to-ns-admin"
	aggregateToEdit       = "rbac.crossplane.io/aggregate-to-edit"
	aggregateToNSEdit     = "rbac.crossplane.io/aggregate-to-ns-edit"
	aggregateToView       = "rbac.crossplane.io/aggregate-to-view"
	aggregateToNSView     = "rbac.crossplane.io/aggregate-to-ns-view"
)

// CrossplaneRoles returns the roles that Crossplane's chart and RBAC manager create when the
// project's packages are installed, and the bindings of Crossplane and of the provider (crossplane
// v2.4: internal/controller/rbac/{provider,definition}/roles and
// cluster/charts/crossplane/templates/{clusterrole,rbac-manager-managed-clusterroles}.yaml).
func CrossplaneRoles(root string) ([]client.Object, error) {
	managed, err := providerCRDs(root)
	if err != nil {
		return nil, err
	}
	composites, err := Composites()
	if err != nil {
		return nil, err
	}
	provider, err := ProviderRoles(root)
	if err != nil {
		return nil, err
	}
	out := slices.Concat(provider, []client.Object{
		aggregated("crossplane", aggregateToCrossplane),
		aggregated("crossplane-admin", aggregateToAdmin),
		aggregated("crossplane-edit", aggregateToEdit),
		aggregated("crossplane-view", aggregateToView),
		role("crossplane:aggregate-to-edit", []string{aggregateToEdit},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events", "namespaces"}, Verbs: view},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: all},
			rbacv1.PolicyRule{
				APIGroups: []string{"apiextensions.crossplane.io", "pkg.crossplane.io", "secrets.crossplane.io", "protection.crossplane.io", "ops.crossplane.io"},
				Resources: []string{rbacv1.ResourceAll}, Verbs: all,
			}),
		role("crossplane:system:aggregate-to-crossplane", []string{aggregateToCrossplane},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch", "delete"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "services"}, Verbs: all},
			rbacv1.PolicyRule{
				APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "configmaps", "leases"},
				Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
			},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}),
		// Of the provider's package.
		role("crossplane:provider:tailscale:aggregate-to-edit", []string{aggregateToCrossplane, aggregateToAdmin, aggregateToEdit}, withStatus(managed, all)...),
		role("crossplane:provider:tailscale:aggregate-to-view", []string{aggregateToView}, withStatus(managed, view)...),
		bound("crossplane", AccountCrossplane, "crossplane"),
	})
	for _, c := range composites {
		crds, name := []*apiextensionsv1.CustomResourceDefinition{c}, "crossplane:composite:"+c.GetName()
		finalizers := rbacv1.PolicyRule{APIGroups: groups(crds), Resources: []string{c.Spec.Names.Plural + "/finalizers"}, Verbs: []string{"update"}}
		out = append(out,
			role(name+":aggregate-to-crossplane", []string{aggregateToCrossplane}, append(withStatus(crds, all), finalizers)...),
			role(name+":aggregate-to-edit", []string{aggregateToAdmin, aggregateToNSAdmin, aggregateToEdit, aggregateToNSEdit}, withStatus(crds, all)...),
			role(name+":aggregate-to-view", []string{aggregateToView, aggregateToNSView}, withStatus(crds, view)...))
	}
	return out, nil
}

// ProviderRoles returns the roles that Crossplane creates for the provider, which starts in safe
// mode.
func ProviderRoles(root string) ([]client.Object, error) {
	managed, err := providerCRDs(root)
	if err != nil {
		return nil, err
	}
	const system = "crossplane:provider:tailscale:system"
	rules := append(withStatus(managed, []string{"get", "list", "watch", "update", "patch", "create"}),
		rbacv1.PolicyRule{APIGroups: groups(managed), Resources: []string{"*/finalizers"}, Verbs: []string{"update"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "configmaps", "events", "leases"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: view})
	return []client.Object{role(system, nil, rules...), bound(system, AccountProvider, system)}, nil
}

// Verbs of Crossplane's roles.
var all, view = []string{rbacv1.VerbAll}, []string{"get", "list", "watch"}

func role(name string, aggregates []string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Rules: rules}
	for _, a := range aggregates {
		r.Labels[a] = "true"
	}
	return r
}

func aggregated(name, label string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: name},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}},
	}
}

func bound(name, account, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: CrossplaneNamespace, Name: account}},
	}
}

// withStatus returns rules for kinds and their status.
func withStatus(crds []*apiextensionsv1.CustomResourceDefinition, verbs []string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, g := range groups(crds) {
		r := rbacv1.PolicyRule{APIGroups: []string{g}, Verbs: verbs}
		for _, c := range crds {
			if c.Spec.Group == g {
				r.Resources = append(r.Resources, c.Spec.Names.Plural, c.Spec.Names.Plural+"/status")
			}
		}
		out = append(out, r)
	}
	return out
}

func groups(crds []*apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, c := range crds {
		out = append(out, c.Spec.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// providerCRDs returns the CRDs in the provider's package.
func providerCRDs(root string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(root, "package", "provider", "crds", "*.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot list CRDs")
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read CRD")
		}
		c := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, c); err != nil {
			return nil, errors.Wrapf(err, "cannot decode CRD %q", filepath.Base(f))
		}
		out = append(out, c)
	}
	return out, nil
}

// Installed returns the roles and admission policies of an installation with default values.
func Installed() ([]client.Object, error) {
	all, err := Objects(kustomization.Install)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o client.Object) bool {
		return !slices.Contains([]string{rbacv1.GroupName, admissionv1.GroupName}, o.GetObjectKind().GroupVersionKind().Group)
	}), nil
}

// Objects returns the objects of a manifest.
func Objects(manifest []byte) ([]client.Object, error) {
	var out []client.Object
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(u)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot decode a manifest")
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}
