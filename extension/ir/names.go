// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// ManagedByLabel is Kubernetes' label for what manages an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"

	// ManagedBy is the value of ManagedByLabel on the objects that the extension writes, and the owner of
	// their fields.
	ManagedBy = "tailscale-gateway-extension"
)

// CanonicalHost returns a host name in lower case without a final dot.
func CanonicalHost(h string) string { return strings.ToLower(strings.TrimSuffix(h, ".")) }

// CompareNames orders by namespace, then by name.
func CompareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Sibling returns the name of an object in the namespace of another.
func Sibling(n types.NamespacedName, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: name}
}
