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

	// SchemeBuilder adds the kinds of this group.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every kind of this group to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of this group.
const (
	TailscaleTailnetKind    = "TailscaleTailnet"
	TailscaleEndpointsKind  = "TailscaleEndpoints"
	TailscaleServicesKind   = "TailscaleServices"
	TailscaleProxyGroupKind = "TailscaleProxyGroup"
	TailscaleRevisionKind   = "TailscaleRevision"
	TailscaleGatewayKind    = "TailscaleGateway"

	TailscaleRoutePolicyKind = "TailscaleRoutePolicy"
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&TailscaleTailnet{}, &TailscaleTailnetList{},
		&TailscaleEndpoints{}, &TailscaleEndpointsList{},
		&TailscaleServices{}, &TailscaleServicesList{},
		&TailscaleProxyGroup{}, &TailscaleProxyGroupList{},
		&TailscaleRevision{}, &TailscaleRevisionList{},
		&TailscaleGateway{}, &TailscaleGatewayList{},
		&TailscaleRoutePolicy{}, &TailscaleRoutePolicyList{},
	)
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
