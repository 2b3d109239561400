// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// ServiceAccount builds the service account of the proxies.
func ServiceAccount(o Options) *corev1.ServiceAccount {
	om := o.objectMeta()
	om.Annotations = o.AccountAnnotations
	return &corev1.ServiceAccount{
		ObjectMeta: om,
		// Proxy pods mount the token explicitly. Another pod that uses the account by mistake
		// gets none.
		AutomountServiceAccountToken: ptr.To(false),
	}
}

// Role builds the role of the proxies. Secrets, ConfigMaps and Machines are granted by name; a
// list or a watch works for one name at a time. The creator of this Role must have all its
// permissions.
func Role(o Options) *rbacv1.Role {
	r := &rbacv1.Role{
		ObjectMeta: o.objectMeta(),
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{tailnetv1alpha1.Group},
				Resources: []string{"serviceattachments"},
				Verbs:     []string{"get", "list", "watch"},
			},
			{
				APIGroups: []string{""},
				Resources: []string{"events"},
				Verbs:     []string{"create", "get", "patch"},
			},
		},
	}
	if o.egress() {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"configmaps"},
			ResourceNames: []string{o.Name},
			Verbs:         []string{"get", "list", "watch"},
		})
	}
	if o.Pods.DNSConfigMap != "" {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"configmaps"},
			ResourceNames: []string{o.Pods.DNSConfigMap},
			Verbs:         []string{"get", "list", "watch"},
		})
	}
	// A rule without names would grant all of them.
	if len(o.CertificateSecrets) > 0 {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"secrets"},
			ResourceNames: o.CertificateSecrets,
			Verbs:         []string{"get", "list", "watch"},
		})
	}
	if len(o.Machines) == 0 {
		return r
	}
	configs := make([]string, len(o.Machines))
	for i, m := range o.Machines {
		configs[i] = m + meta.ConfigSecretSuffix
	}
	r.Rules = append(r.Rules,
		rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"secrets"},
			ResourceNames: o.Machines,
			Verbs:         []string{"get", "list", "patch", "update", "watch"},
		},
		rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"secrets"},
			ResourceNames: configs,
			Verbs:         []string{"get", "list", "watch"},
		},
		rbacv1.PolicyRule{
			APIGroups:     []string{tailnetv1alpha1.Group},
			Resources:     []string{"machines"},
			ResourceNames: o.Machines,
			Verbs:         []string{"get", "list", "watch"},
		},
		rbacv1.PolicyRule{
			APIGroups:     []string{tailnetv1alpha1.Group},
			Resources:     []string{"machines/status"},
			ResourceNames: o.Machines,
			Verbs:         []string{"get", "patch", "update"},
		},
	)
	return r
}

// RoleBinding builds the binding of the proxies' account to their Role.
func RoleBinding(o Options) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: o.objectMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: o.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.Name, Namespace: o.Namespace}},
	}
}
