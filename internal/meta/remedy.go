// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TypeRouted reports whether a host of a service is primary, so that clients have a route to it.
const TypeRouted xpv2.ConditionType = "Routed"

// Reasons of Routed.
const (
	// ReasonHostPrimary means that a host is primary.
	ReasonHostPrimary xpv2.ConditionReason = "HostPrimary"

	// ReasonWaitingForPrimary means that the hosts of a new service have just been accepted, and
	// control may still choose a primary one.
	ReasonWaitingForPrimary xpv2.ConditionReason = "WaitingForPrimary"

	// ReasonNoPrimaryHost means that no host has been primary for a minute.
	ReasonNoPrimaryHost xpv2.ConditionReason = "NoPrimaryHost"

	// ReasonPrimaryNotReported means that no host is known to be primary, which does not show that
	// there is none.
	ReasonPrimaryNotReported xpv2.ConditionReason = "PrimaryNotReported"
)

// AnnotationRemedy is on a config Secret, which pods cannot write: a Remedy, as JSON.
const AnnotationRemedy = "gateway.tailscale.com/remedy"

// A Remedy is an action that the provider requests of the agent of a machine, so that control chooses a primary host of a service.
// An agent acts once on each, and only while it knows of no primary host.
type Remedy struct {
	// Service is the name of the Tailscale Service.
	Service string `json:"service"`

	// Action to take.
	Action v1alpha1.RemedyAction `json:"action"`

	// Deadline is when the agent must not begin any more.
	Deadline time.Time `json:"until"`
}
