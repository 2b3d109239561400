// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds that users write. Their schemas become
// CompositeResourceDefinitions: these types are their one source. TailscaleRevision
// and TailscaleRoutePolicy are the extension's, and plain CustomResourceDefinitions.
// Managed resources live in apis/tailnet.
//
// +kubebuilder:object:generate=true
// +groupName=gateway.tailscale.com
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Package type metadata.
const (
	Group   = "gateway.tailscale.com"
	Version = "v1alpha1"
)

var (
	// SchemeGroupVersion identifies this group and version.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

	// SchemeBuilder adds the kinds of this group. The file of each kind registers the kind.
	SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		metav1.AddToGroupVersion(s, SchemeGroupVersion)
		return nil
	})

	// AddToScheme adds every kind of this group to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// register adds kinds and their lists to SchemeBuilder.
func register(objects ...runtime.Object) {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion, objects...)
		return nil
	})
}
