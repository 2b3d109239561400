// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that Crossplane adds to the composite of a claim.
const (
	labelClaimName      = "crossplane.io/claim-name"
	labelClaimNamespace = "crossplane.io/claim-namespace"
)

// crossplaneDomain ends the prefix of Crossplane's own labels and annotations.
const crossplaneDomain = "crossplane.io"

// An Owner is the object that a user wrote: the composite, or its claim.
type Owner struct {
	// Name is the name of the object.
	Name string

	// Namespace is the namespace of the object and of its children. It is empty if the composite is
	// cluster-scoped and has no claim.
	Namespace string

	// Labels are the labels of the object, without those of Crossplane.
	Labels map[string]string
}

// OwnerOf returns the user's object for a composite's metadata.
func OwnerOf(xr metav1.Object) Owner {
	o := Owner{Name: xr.GetName(), Namespace: xr.GetNamespace(), Labels: withoutCrossplane(xr.GetLabels())}
	if o.Namespace != "" {
		return o
	}
	l := xr.GetLabels()
	if l[labelClaimName] == "" {
		return o
	}
	o.Name, o.Namespace = l[labelClaimName], l[labelClaimNamespace]
	return o
}

// withoutCrossplane copies labels or annotations except for Crossplane's own: they differ between
// an object and its claim, and a function that sends them back would own them.
func withoutCrossplane(src map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range src {
		prefix, _, found := strings.Cut(k, "/")
		if found && (prefix == crossplaneDomain || strings.HasSuffix(prefix, "."+crossplaneDomain)) {
			continue
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
