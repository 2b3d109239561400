// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TypeFencingReady reports whether dead hosts of a service are fenced.
const TypeFencingReady xpv2.ConditionType = "FencingReady"

// Reasons of FencingReady.
const (
	// ReasonHostsWatched means that each host has two witnesses that it answers.
	ReasonHostsWatched xpv2.ConditionReason = "HostsWatched"

	// ReasonHostFenced means that the approval of a host is withdrawn, because its witnesses have lost it.
	ReasonHostFenced xpv2.ConditionReason = "HostFenced"

	// ReasonHostLost means that witnesses have lost a host that cannot be fenced, because no other host
	// serves.
	ReasonHostLost xpv2.ConditionReason = "HostLost"

	// ReasonNotEnoughWitnesses means that a host has fewer than two machines on other Kubernetes nodes or in
	// other clusters.
	ReasonNotEnoughWitnesses xpv2.ConditionReason = "NotEnoughWitnesses"

	// ReasonHostsNotVisible means that a host does not answer its witnesses, probably because the policy file
	// does not let them see it.
	ReasonHostsNotVisible xpv2.ConditionReason = "HostsNotVisible"

	// ReasonFencingUnavailable means that Tailscale's API does not withdraw the approval of a host.
	ReasonFencingUnavailable xpv2.ConditionReason = "FencingUnavailable"
)

// watchPrefix begins the annotations of watches.
const watchPrefix = "watch.gateway.tailscale.com/"

// AnnotationWatch returns the annotation of a config Secret, which pods cannot write, with the node IDs of
// the hosts of a service that the machine watches, separated by spaces.
func AnnotationWatch(service string) string {
	return watchPrefix + strings.TrimPrefix(service, "svc:")
}

// WatchedHosts returns the node IDs in all annotations of AnnotationWatch, sorted.
func WatchedHosts(annotations map[string]string) []string {
	var out []string
	for key, ids := range annotations {
		if strings.HasPrefix(key, watchPrefix) {
			out = append(out, strings.Fields(ids)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
