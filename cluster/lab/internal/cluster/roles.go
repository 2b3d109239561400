// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Users of components without a default role in Kubernetes, and the names of
// their roles.
const (
	corednsUser    = "system:coredns"
	kubeRouterUser = "system:kube-router"
)

// roles returns the roles of components without a default role in Kubernetes.
func roles() []*rbacv1.ClusterRole {
	read := []string{"list", "watch"}
	return []*rbacv1.ClusterRole{
		{
			ObjectMeta: metav1.ObjectMeta{Name: corednsUser},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"endpoints", "services", "pods", "namespaces"}, Verbs: read},
				{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: read},
			},
		},
		{
			// It lists Services and their endpoints too, whether it needs them or not.
			ObjectMeta: metav1.ObjectMeta{Name: kubeRouterUser},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"endpoints", "services", "pods", "namespaces", "nodes"}, Verbs: read},
				{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
				{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: read},
				{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"networkpolicies"}, Verbs: read},
			},
		},
	}
}

// ApplyRoles creates the roles of CoreDNS and kube-router. Existing roles are not changed.
func (c Cluster) ApplyRoles(ctx context.Context, k kubernetes.Interface) error {
	for _, r := range roles() {
		if _, err := k.RbacV1().ClusterRoles().Create(ctx, r, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
			return errors.Wrapf(err, "cannot create ClusterRole %q", r.Name)
		}
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.Name}},
		}
		if _, err := k.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
			return errors.Wrapf(err, "cannot create ClusterRoleBinding %q", b.Name)
		}
	}
	return nil
}
