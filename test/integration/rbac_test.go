// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/manifests"
)

// providerSubject is who the provider is in a cluster, as cluster/manifests says.
var providerSubject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "crossplane-system", Name: "provider-tailscale"}

// systemRules are what Crossplane lets a provider do that starts safely
// (github.com/crossplane/crossplane internal/controller/rbac/provider/roles,
// RenderClusterRoles).
func systemRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "update", "patch", "create"}},
		{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "configmaps", "events", "leases"}, Verbs: []string{"*"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	}
}

// asProvider returns a config that may do what the provider may in a cluster: what
// Crossplane lets it do, and what our manifest does.
func asProvider(ctx context.Context, kube client.Client, cfg *rest.Config) (*rest.Config, error) {
	name := "crossplane:provider:" + providerSubject.Name + ":system"
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: systemRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{providerSubject},
		},
	}
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.RBAC), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(u)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot parse our roles")
		}
		objects = append(objects, u)
	}
	for _, o := range objects {
		if err := kube.Create(ctx, o); err != nil {
			return nil, errors.Wrapf(err, "cannot create role %q", o.GetName())
		}
	}
	out := rest.CopyConfig(cfg)
	out.Impersonate.UserName = "system:serviceaccount:" + providerSubject.Namespace + ":" + providerSubject.Name
	return out, nil
}
