// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// RequireTailnet is the requirement of a TailscaleTailnet, as its provider config
// has it. The config hardly changes, while the TailscaleTailnet has a status: each
// of its changes would run every function that requires it, and count against
// their composites in Crossplane's circuit breaker.
func RequireTailnet(name string) Requirement {
	return Requirement{
		Key:        "tailnet",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ClusterProviderConfigKind,
		Name:       name,
	}
}

// A TailnetVerdict tells whether a namespace may use a tailnet, and why not.
type TailnetVerdict struct {
	Accepted bool
	Reason   xpv2.ConditionReason
	Message  string
}

// JudgeTailnet tells whether a namespace may use the tailnet of this name. The
// provider config is nil when there is none.
func JudgeTailnet(name, namespace string, c *tailnetv1alpha1.ClusterProviderConfig) TailnetVerdict {
	if c == nil {
		return TailnetVerdict{
			Reason:  meta.ReasonTailnetNotFound,
			Message: fmt.Sprintf("There is no TailscaleTailnet %q; create it, or name one that exists", name),
		}
	}
	if !c.Spec.AllowedNamespaces.Allows(namespace) {
		return TailnetVerdict{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("TailscaleTailnet %q does not allow namespace %q; add it to spec.allowedNamespaces.names", name, namespace),
		}
	}
	return TailnetVerdict{
		Accepted: true,
		Reason:   meta.ReasonAccepted,
		Message:  fmt.Sprintf("TailscaleTailnet %q allows namespace %q", name, namespace),
	}
}

// ProviderConfigRef refers to the provider config of a TailscaleTailnet.
func ProviderConfigRef(tailnet string) *xpv2.ProviderConfigReference {
	return &xpv2.ProviderConfigReference{Kind: tailnetv1alpha1.ClusterProviderConfigKind, Name: tailnet}
}

// Tags joins lists of tags: sorted, each once.
func Tags[T ~string](lists ...[]T) []tailnetv1alpha1.Tag {
	var out []tailnetv1alpha1.Tag
	for _, l := range lists {
		for _, t := range l {
			out = append(out, tailnetv1alpha1.Tag(t))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
