// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extensionpods

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Resource names of an extension's children.
const (
	KeyDeployment = "extension"
	keyAccount    = "extension-account"
	keyRights     = "extension-rights"
	keyLease      = "extension-lease"
	keyLeading    = "extension-leading"
	keyHooks      = "extension-hooks"
	KeyEDS        = "extension-eds"
	keyMetrics    = "extension-metrics"
	keyBudget     = "extension-budget"
	keyPolicy     = "extension-policy"
)

// Children returns the children of the extension. The pods are created once the address
// for Envoys is known: Envoys connect to an address, because those on the host's network cannot
// resolve names of the cluster.
func (p Plan) Children() compose.Children {
	var out compose.Children
	e := p.Extension
	if e == nil {
		return out
	}
	out.Add(keyAccount, e.serviceAccount(), true)
	out.Add(keyRights, e.roleBinding(suffixRights, rbacv1.RoleRef{Kind: "ClusterRole", Name: extensionRole}), true)
	out.Add(keyLease, e.leaseRole(), true)
	out.Add(keyLeading, e.roleBinding(suffixLease, rbacv1.RoleRef{Kind: "Role", Name: e.Name + suffixLease}), true)
	out.Add(keyHooks, e.service(suffixHooks), true)
	out.Add(KeyEDS, e.service(suffixEDS), true)
	out.Add(keyMetrics, e.service(suffixMetrics), true)
	out.Add(keyPolicy, e.networkPolicy(), true)
	if e.replicas() > 1 {
		out.Add(keyBudget, e.budget(), true)
	}
	current := e.EDS != nil && e.EDS.Spec.ClusterIP != ""
	out.Incomplete = !current
	if e.edsTarget() != "" {
		out.Add(KeyDeployment, e.composeDeployment(), current && e.ReadyReplicas() == e.replicas())
	}
	return out
}
