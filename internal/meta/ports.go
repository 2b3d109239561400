// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TypePortsHealthy reports whether clients reach all ports of a service. It exists once one did not.
const TypePortsHealthy xpv2.ConditionType = "PortsHealthy"

// Reasons of PortsHealthy.
const (
	// ReasonPortsHealthy means that a host serves all ports.
	ReasonPortsHealthy xpv2.ConditionReason = "PortsHealthy"

	// ReasonPortUnhealthy means that the backend of a port does not answer, and that no host is
	// known to serve all ports.
	ReasonPortUnhealthy xpv2.ConditionReason = "PortUnhealthy"

	// ReasonPortNotServed means that a port is not added to the service, because hosts do not serve
	// it yet.
	ReasonPortNotServed xpv2.ConditionReason = "PortNotServed"
)

// TypePortsAllowed reports whether the selected TailscaleEndpoints allow all ports of a service. It
// exists once one did not.
const TypePortsAllowed xpv2.ConditionType = "PortsAllowed"

// Reasons of PortsAllowed.
const (
	// ReasonPortsAllowed means that all of them do.
	ReasonPortsAllowed xpv2.ConditionReason = "PortsAllowed"

	// ReasonPortsNotAllowed means that one does not, and hosts the service no longer, or with other
	// ports than the spec says.
	ReasonPortsNotAllowed xpv2.ConditionReason = "PortsNotAllowed"

	// ReasonPortsKept means that one hosts the service at ports that it does not allow, because it did
	// so before its list counted for ingress.
	ReasonPortsKept xpv2.ConditionReason = "PortsKept"
)

// withdrawPrefix begins the annotations of withdrawals.
const withdrawPrefix = "withdraw.gateway.tailscale.com/"

// AnnotationWithdraw returns the annotation of a config Secret, which pods cannot write, with the
// time until when the machine does not advertise a service while one of its backends does not
// answer. Each service has its own, because each has its own writer.
func AnnotationWithdraw(service string) string {
	return withdrawPrefix + strings.TrimPrefix(service, "svc:")
}

// WithdrawnService returns the service of an annotation of AnnotationWithdraw, and false for other
// annotations.
func WithdrawnService(annotation string) (string, bool) {
	name, ok := strings.CutPrefix(annotation, withdrawPrefix)
	return "svc:" + name, ok
}
