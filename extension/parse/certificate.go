// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// KindSecret is the kind of Secrets in references.
const KindSecret = "Secret"

// IsSecret reports whether a reference names a Secret.
func IsSecret(r gwapiv1.SecretObjectReference) bool {
	return r.Name != "" && ptr.Deref(r.Group, corev1.GroupName) == corev1.GroupName && ptr.Deref(r.Kind, KindSecret) == KindSecret
}

// ParseCertificateRef returns the certificate in the Secret that a reference from a
// namespace names.
func ParseCertificateRef(namespace string, r gwapiv1.SecretObjectReference) *ir.ClientCertificate {
	return &ir.ClientCertificate{Secret: types.NamespacedName{
		Namespace: string(ptr.Deref(r.Namespace, gwapiv1.Namespace(namespace))), Name: string(r.Name),
	}}
}
