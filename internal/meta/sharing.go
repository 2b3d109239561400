// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Annotations of Tailscale Services that clusters share. Those of a cluster's
// own service are its record; those of the shared service are a copy of all
// records for people and tools.
const (
	// AnnotationSchemaVersion says how to read the others: SchemaVersion.
	AnnotationSchemaVersion = "gateway.tailscale.com/schema-version"

	// AnnotationSharedService is on a cluster's own service: the name of the
	// shared one.
	AnnotationSharedService = "gateway.tailscale.com/shared-service"

	// AnnotationRecord is on a cluster's own service: its record, as JSON.
	AnnotationRecord = "gateway.tailscale.com/record"

	// AnnotationRegistry is on the shared service: all living records, as JSON.
	AnnotationRegistry = "gateway.tailscale.com/service-registry"

	// AnnotationOwnerOperator is on the shared service: CLUSTER-ID/NAMESPACE/NAME
	// of the VIPService whose tags and ports it has.
	AnnotationOwnerOperator = "gateway.tailscale.com/owner-operator"

	// AnnotationConsumerCount is on the shared service: how many clusters live.
	AnnotationConsumerCount = "gateway.tailscale.com/consumer-count"

	// AnnotationLastUpdated is on the shared service: when it was last written,
	// by the clock of Tailscale's API, as RFC 3339.
	AnnotationLastUpdated = "gateway.tailscale.com/last-updated"

	// AnnotationPreviousAddress is on a shared service that was made again and
	// could not get its IPv4 address back: the address that it had.
	AnnotationPreviousAddress = "gateway.tailscale.com/previous-address"

	// AnnotationManagedAnnotations lists the annotations that were set because a
	// VIPService says so, as a JSON list of keys.
	AnnotationManagedAnnotations = "gateway.tailscale.com/managed-annotations"

	// AnnotationOwnerReferences is how Tailscale's own operator says whose a
	// service is (tailscale.com cmd/k8s-operator/ingress-for-pg.go).
	AnnotationOwnerReferences = "tailscale.com/owner-references"
)

// SchemaVersion of the annotations above.
const SchemaVersion = "v1"

const (
	// TypeConflict reports whether clusters that share a service want different
	// tags or ports.
	TypeConflict xpv2.ConditionType = "Conflict"

	// TypeAddressKept reports whether a shared service that was made again got its
	// IPv4 address back.
	TypeAddressKept xpv2.ConditionType = "AddressKept"

	// TypeAnnotationsKept reports whether the tailnet keeps the annotations of a
	// service, which say whose it is.
	TypeAnnotationsKept xpv2.ConditionType = "AnnotationsKept"

	// TypeHostTagsMatch reports whether the machines that are to host a service have a
	// tag of the service.
	TypeHostTagsMatch xpv2.ConditionType = "HostTagsMatch"
)

// Reasons of Conflict, AddressKept, Approved and, of a VIPService, Ready.
const (
	ReasonSettingsDiffer    xpv2.ConditionReason = "SettingsDiffer"
	ReasonSettingsAgree     xpv2.ConditionReason = "SettingsAgree"
	ReasonAddressKept       xpv2.ConditionReason = "AddressKept"
	ReasonAddressTaken      xpv2.ConditionReason = "AddressTaken"
	ReasonSharedByOthers    xpv2.ConditionReason = "SharedByOthers"
	ReasonApprovalForbidden xpv2.ConditionReason = "ApprovalForbidden"
	ReasonAnnotationsKept   xpv2.ConditionReason = "AnnotationsKept"
	ReasonAnnotationsLost   xpv2.ConditionReason = "AnnotationsLost"
	ReasonHostTagsMatch     xpv2.ConditionReason = "HostTagsMatch"
	ReasonHostTagsDiffer    xpv2.ConditionReason = "HostTagsDiffer"
)
