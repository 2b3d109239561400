// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// RequireTailnet returns the requirement of a TailscaleTailnet's provider config. The config rarely
// changes. The TailscaleTailnet has a status, each change of which would run every function that
// requires it, and count against their composites in Crossplane's circuit breaker.
func RequireTailnet(name string) Requirement {
	return Requirement{
		Key:        "tailnet",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ClusterProviderConfigKind,
		Name:       name,
	}
}

// requireNamespace returns the requirement of a namespace, for its labels. A namespace rarely
// changes as well.
func requireNamespace(name string) Requirement {
	return Requirement{Key: "namespace", APIVersion: "v1", Kind: "Namespace", Name: name}
}

// Tailnet requires the TailscaleTailnet of this name and reports whether a namespace may use it.
// The provider config is nil if there is none. waiting is a message for the user about objects that
// Crossplane has not read yet; it is empty when all are known.
func (r *Run) Tailnet(name, namespace string) (c *tailnetv1alpha1.ClusterProviderConfig, v TailnetVerdict, waiting string, err error) {
	return r.tailnet(RequireTailnet(name), namespace)
}

// TailnetOf does the same as Tailnet for one of several tailnets with different keys.
func (r *Run) TailnetOf(key, name, namespace string) (c *tailnetv1alpha1.ClusterProviderConfig, v TailnetVerdict, waiting string, err error) {
	need := RequireTailnet(name)
	need.Key += "-" + key
	return r.tailnet(need, namespace)
}

func (r *Run) tailnet(need Requirement, namespace string) (c *tailnetv1alpha1.ClusterProviderConfig, v TailnetVerdict, waiting string, err error) {
	name := need.Name
	configs, resolved, err := Lookup[tailnetv1alpha1.ClusterProviderConfig](r, need)
	if err != nil {
		return nil, v, "", err
	}
	if !resolved {
		return nil, v, "Waiting for Crossplane to read the TailscaleTailnet", nil
	}
	if len(configs) > 0 {
		c = &configs[0]
	}
	if c == nil || !allow.ByLabels(c.Spec.AllowedNamespaces) {
		return c, JudgeTailnet(name, namespace, nil, c), "", nil
	}

	l, waiting, err := r.namespaceLabels(namespace)
	if err != nil || waiting != "" {
		return c, v, waiting, err
	}
	return c, JudgeTailnet(name, namespace, l, c), "", nil
}

// requireTailnets returns the requirement of the provider configs of all TailscaleTailnets.
func requireTailnets() Requirement {
	need := RequireTailnet("")
	need.Key = "tailnets"
	return need
}

// OnlyTailnet requires all TailscaleTailnets and returns the name and the provider config of the
// only one that allows a namespace. The name is empty if there is none or more than one; the
// verdict has the reason then. It names no tailnet that does not allow the namespace.
func (r *Run) OnlyTailnet(namespace string) (name string, c *tailnetv1alpha1.ClusterProviderConfig, v TailnetVerdict, waiting string, err error) {
	configs, resolved, err := Lookup[tailnetv1alpha1.ClusterProviderConfig](r, requireTailnets())
	if err != nil {
		return "", nil, v, "", err
	}
	if !resolved {
		return "", nil, v, "Waiting for Crossplane to read the TailscaleTailnets", nil
	}
	var l map[string]string
	if slices.ContainsFunc(configs, func(c tailnetv1alpha1.ClusterProviderConfig) bool { return allow.ByLabels(c.Spec.AllowedNamespaces) }) {
		if l, waiting, err = r.namespaceLabels(namespace); err != nil || waiting != "" {
			return "", nil, v, waiting, err
		}
	}
	var names []string
	for i := range configs {
		if configs[i].GetDeletionTimestamp() != nil {
			continue
		}
		switch verdict := JudgeTailnet(configs[i].GetName(), namespace, l, &configs[i]); {
		case verdict.Accepted:
			name, c, v, names = configs[i].GetName(), &configs[i], verdict, append(names, configs[i].GetName())
		case verdict.Reason == meta.ReasonInvalidSelector:
			// It may allow the namespace. Whether there is only one is not known.
			return "", nil, TailnetVerdict{
				Reason:  meta.ReasonInvalidSelector,
				Message: "A TailscaleTailnet has an invalid selector of namespaces, so it is not known which are allowed; name one in spec.tailnet",
			}, "", nil
		}
	}
	switch len(names) {
	case 1:
		return name, c, v, "", nil
	case 0:
		return "", nil, TailnetVerdict{
			Reason:  meta.ReasonTailnetNotFound,
			Message: fmt.Sprintf("No TailscaleTailnet allows namespace %q; create one, or name one in spec.tailnet", namespace),
		}, "", nil
	}
	slices.Sort(names)
	return "", nil, TailnetVerdict{
		Reason:  meta.ReasonAmbiguous,
		Message: fmt.Sprintf("Several TailscaleTailnets allow namespace %q; set spec.tailnet to one of %s", namespace, List(names...)),
	}, "", nil
}

// namespaceLabels requires a namespace and returns its labels.
func (r *Run) namespaceLabels(name string) (l map[string]string, waiting string, err error) {
	found, _, err := Lookup[corev1.Namespace](r, requireNamespace(name))
	if err != nil {
		return nil, "", err
	}
	// The object is in the namespace, so the namespace exists: Crossplane has no permission to read
	// it.
	if len(found) == 0 {
		return nil, fmt.Sprintf("Waiting for Crossplane to read the labels of namespace %q; let it get, list and watch namespaces", name), nil
	}
	return found[0].GetLabels(), "", nil
}

// A TailnetVerdict reports whether a namespace may use a tailnet, and why not.
type TailnetVerdict struct {
	Accepted bool
	Reason   xpv2.ConditionReason
	Message  string

	// Grant is what the namespace may do with the tailnet. It is nil unless the namespace is
	// accepted.
	Grant *allow.Grant

	// ClusterSet is the set of clusters that the tailnet names. It is empty if there is none, and
	// unless the namespace is accepted.
	ClusterSet tailnetv1alpha1.ClusterSetName

	// Drain reports that this cluster hands the services that it shares to others.
	Drain bool

	tailnet string
}

// Within returns the verdict itself if there is no violation, and otherwise one with the first
// violation.
func (v TailnetVerdict) Within(violations ...*allow.ViolationError) TailnetVerdict {
	for _, violation := range violations {
		if violation != nil {
			return TailnetVerdict{Reason: meta.ReasonNotGranted, Message: fmt.Sprintf("TailscaleTailnet %q: %v", v.tailnet, violation)}
		}
	}
	return v
}

// JudgeTailnet reports whether a namespace with these labels may use the tailnet of this name. The
// provider config is nil if there is none.
func JudgeTailnet(name, namespace string, l map[string]string, c *tailnetv1alpha1.ClusterProviderConfig) TailnetVerdict {
	if c == nil {
		return TailnetVerdict{
			Reason:  meta.ReasonTailnetNotFound,
			Message: fmt.Sprintf("There is no TailscaleTailnet %q; create it, or name one that exists", name),
		}
	}
	allowed := c.Spec.AllowedNamespaces
	grant, err := allow.Of(allowed, c.Spec.Tags, namespace, l)
	switch {
	case err != nil:
		return TailnetVerdict{
			Reason:  meta.ReasonInvalidSelector,
			Message: fmt.Sprintf("TailscaleTailnet %q: %s: %v", name, allow.SelectorPath(allowed), err),
		}
	case grant == nil && allowed.From == tailnetv1alpha1.NamespacesFromGrants:
		return TailnetVerdict{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("TailscaleTailnet %q does not allow namespace %q; add an entry that matches it to spec.allowedNamespaces.grants", name, namespace),
		}
	case grant == nil && allow.ByLabels(allowed):
		return TailnetVerdict{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("TailscaleTailnet %q does not allow namespace %q; label it as spec.allowedNamespaces.selector says: %s", name, namespace, metav1.FormatLabelSelector(allowed.Selector)),
		}
	case grant == nil:
		return TailnetVerdict{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("TailscaleTailnet %q does not allow namespace %q; add it to spec.allowedNamespaces.names", name, namespace),
		}
	}
	return TailnetVerdict{
		Accepted: true,
		Reason:   meta.ReasonAccepted,
		Message:  fmt.Sprintf("TailscaleTailnet %q allows namespace %q", name, namespace),
		Grant:    grant,
		tailnet:  name,

		ClusterSet: c.Spec.ClusterSet,
		Drain:      c.Spec.Drain,
	}
}

// ProviderConfigRef returns a reference to the provider config of a TailscaleTailnet.
func ProviderConfigRef(tailnet string) *xpv2.ProviderConfigReference {
	return &xpv2.ProviderConfigReference{Kind: tailnetv1alpha1.ClusterProviderConfigKind, Name: tailnet}
}

// Tags returns the tags of all lists, sorted and without duplicates.
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
