// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Annotations of Tailscale Services that clusters share. Those of a cluster's service are its
// record; those of the shared service are a copy of all records, for people and tools.
const (
	// AnnotationSchemaVersion is the version of the other annotations: SchemaVersion.
	AnnotationSchemaVersion = "gateway.tailscale.com/schema-version"

	// AnnotationSharedService is on a cluster's service: the name of the shared one.
	AnnotationSharedService = "gateway.tailscale.com/shared-service"

	// AnnotationRecord is on a cluster's service: its record, as JSON.
	AnnotationRecord = "gateway.tailscale.com/record"

	// AnnotationRegistry is on the shared service: all live records, as JSON.
	AnnotationRegistry = "gateway.tailscale.com/service-registry"

	// AnnotationOwnerOperator is on the shared service: CLUSTER-ID/NAMESPACE/NAME of the
	// VIPService that defines its tags and ports.
	AnnotationOwnerOperator = "gateway.tailscale.com/owner-operator"

	// AnnotationConsumerCount is on the shared service: the number of live clusters.
	AnnotationConsumerCount = "gateway.tailscale.com/consumer-count"

	// AnnotationClusterSet is on the shared service: the set of clusters that share it. It is absent
	// if any cluster may.
	AnnotationClusterSet = "gateway.tailscale.com/cluster-set"

	// AnnotationLastUpdated is on the shared service: the time of the last update, by the clock
	// of Tailscale's API, as RFC 3339.
	AnnotationLastUpdated = "gateway.tailscale.com/last-updated"

	// AnnotationPreviousAddress is on a shared service that was created again and did not get
	// its IPv4 address back: the former address.
	AnnotationPreviousAddress = "gateway.tailscale.com/previous-address"

	// AnnotationManagedAnnotations lists the keys of the annotations that a VIPService sets, as
	// a JSON list.
	AnnotationManagedAnnotations = "gateway.tailscale.com/managed-annotations"

	// AnnotationOwnerReferences is the annotation with which Tailscale's operator records the
	// owners of a service (tailscale.com cmd/k8s-operator/ingress-for-pg.go).
	AnnotationOwnerReferences = "tailscale.com/owner-references"
)

// SchemaVersion of the annotations above.
const SchemaVersion = "v1"

const (
	// TypeConflict reports whether clusters that share a service specify different tags, ports or
	// cluster sets.
	TypeConflict xpv2.ConditionType = "Conflict"

	// TypeDrained reports whether this cluster has handed a service to other clusters.
	TypeDrained xpv2.ConditionType = "Drained"

	// TypeAddressKept reports whether a shared service that was created again got its IPv4
	// address back.
	TypeAddressKept xpv2.ConditionType = "AddressKept"

	// TypeAnnotationsKept reports whether the tailnet keeps the annotations of a service, which
	// record its owner.
	TypeAnnotationsKept xpv2.ConditionType = "AnnotationsKept"

	// TypeHostTagsMatch reports whether the machines that should host a service have a tag of
	// the service.
	TypeHostTagsMatch xpv2.ConditionType = "HostTagsMatch"
)

// Reasons of Conflict, AddressKept, Approved and, for a VIPService, Ready.
const (
	ReasonSettingsDiffer    xpv2.ConditionReason = "SettingsDiffer"
	ReasonSettingsAgree     xpv2.ConditionReason = "SettingsAgree"
	ReasonAddressKept       xpv2.ConditionReason = "AddressKept"
	ReasonAddressTaken      xpv2.ConditionReason = "AddressTaken"
	ReasonSharedByOthers    xpv2.ConditionReason = "SharedByOthers"
	ReasonHostsWithdrawn    xpv2.ConditionReason = "HostsWithdrawn"
	ReasonHostsWithdrawing  xpv2.ConditionReason = "HostsWithdrawing"
	ReasonDrainAnnounced    xpv2.ConditionReason = "DrainAnnounced"
	ReasonNoOtherCluster    xpv2.ConditionReason = "NoOtherCluster"
	ReasonNotShared         xpv2.ConditionReason = "NotShared"
	ReasonNoClusterSet      xpv2.ConditionReason = "NoClusterSet"
	ReasonApprovalForbidden xpv2.ConditionReason = "ApprovalForbidden"
	ReasonAnnotationsKept   xpv2.ConditionReason = "AnnotationsKept"
	ReasonAnnotationsLost   xpv2.ConditionReason = "AnnotationsLost"
	ReasonHostTagsMatch     xpv2.ConditionReason = "HostTagsMatch"
	ReasonHostTagsDiffer    xpv2.ConditionReason = "HostTagsDiffer"
)
