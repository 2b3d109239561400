// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// RequireTailnet is the requirement of a TailscaleTailnet.
func RequireTailnet(name string) Requirement {
	return Requirement{
		Key:        "tailnet",
		APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(),
		Kind:       gatewayv1alpha1.TailscaleTailnetKind,
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
// tailnet is nil when there is none.
func JudgeTailnet(name, namespace string, t *gatewayv1alpha1.TailscaleTailnet) TailnetVerdict {
	if t == nil {
		return TailnetVerdict{
			Reason:  meta.ReasonTailnetNotFound,
			Message: fmt.Sprintf("There is no TailscaleTailnet %q; create it, or name one that exists", name),
		}
	}
	a := t.Spec.AllowedNamespaces
	if a != nil && a.From == gatewayv1alpha1.NamespacesFromList && !slices.Contains(a.Names, namespace) {
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
