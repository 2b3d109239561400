// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// contained are the kinds that limits of tags, services and domains can restrict. The others
// act on the whole tailnet.
var contained = []tailnetv1alpha1.ManagedKind{
	tailnetv1alpha1.AuthKeyKind, tailnetv1alpha1.DeviceKind, tailnetv1alpha1.DiscoveryKind,
	tailnetv1alpha1.MachineKind, tailnetv1alpha1.SplitDNSKind, tailnetv1alpha1.VIPServiceKind,
}

// A Grant is the permission of a namespace to use a tailnet. It is nil if the namespace may not
// use the tailnet.
type Grant struct {
	limits tailnetv1alpha1.NamespaceGrant

	// path of the entry, for messages. Empty if the namespace may use the whole credential.
	path string

	// common are the tailnet's default tags, which every machine has.
	common []tailnetv1alpha1.Tag

	// domains are those of all allowed namespaces. They are empty if the entry has its own.
	domains []tailnetv1alpha1.GrantedDomain

	// closed limits tags, services and domains even if the lists are empty.
	closed bool
}

// A ViolationError is an error about a setting that exceeds a grant. It describes how to fix
// it.
type ViolationError struct {
	// Field of the object, such as spec.tags[0].
	Field string

	// Problem with its value, and a fix.
	Problem string
}

// Error returns the field and the problem.
func (v *ViolationError) Error() string { return v.Field + ": " + v.Problem }

// Limited reports whether the grant is less than the whole credential.
func (g *Grant) Limited() bool {
	return len(g.limits.Kinds) > 0 || g.contains()
}

// contains reports whether the grant limits tags, services or domains.
func (g *Grant) contains() bool {
	return g.limitsTags() || g.limitsServices() || g.limitsDomains()
}

func (g *Grant) limitsTags() bool     { return g.closed || len(g.limits.Tags) > 0 }
func (g *Grant) limitsServices() bool { return g.closed || len(g.limits.Services) > 0 }
func (g *Grant) limitsDomains() bool  { return g.closed || len(g.limits.Domains) > 0 }

// beyond returns the violation of a limit.
func (g *Grant) beyond(field, subject, limit string) *ViolationError {
	return &ViolationError{Field: field, Problem: fmt.Sprintf("the tailnet does not grant %s to this namespace; use another, or ask who manages the TailscaleTailnet to allow it in %s", subject, g.place(limit))}
}

// untagged returns the violation of the limit of tags by an object without any.
func (g *Grant) untagged(field string) *ViolationError {
	return &ViolationError{Field: field, Problem: "there is no tag, but the tailnet grants this namespace only objects with a tag; add one that is in " + g.place("tags")}
}

// place returns the field of a TailscaleTailnet that has a limit of the grant.
func (g *Grant) place(limit string) string {
	if g.path == "" {
		// The namespace has the whole credential, so the limit applies to all such namespaces.
		return limit + " of an entry of spec.allowedNamespaces.grants"
	}
	return g.path + "." + limit
}

// Kind returns a violation if the kind of managed resource may not act on the tailnet.
func (g *Grant) Kind(field, kind string) *ViolationError {
	kinds := g.limits.Kinds
	if len(kinds) == 0 && g.contains() {
		kinds = contained
	}
	if len(kinds) == 0 || slices.Contains(kinds, tailnetv1alpha1.ManagedKind(kind)) {
		return nil
	}
	return g.beyond(field, "kind "+kind, "kinds")
}

// Tags returns a violation for tags to assign that are neither granted nor default tags of the
// tailnet.
func Tags[T ~string](g *Grant, field string, tags []T) *ViolationError {
	return g.tags(field, plain(tags), g.common)
}

// TagsOf returns a violation for the tags of an existing object. It must have a tag, because an
// object without tags belongs to a user. The tailnet's default tags do not count, because
// objects of any namespace can have them.
func TagsOf[T ~string](g *Grant, field string, tags []T) *ViolationError {
	if g.limitsTags() && len(tags) == 0 {
		return g.untagged(field)
	}
	return g.tags(field, plain(tags), nil)
}

func (g *Grant) tags(field string, tags []string, extra []tailnetv1alpha1.Tag) *ViolationError {
	if !g.limitsTags() {
		return nil
	}
	for i, t := range tags {
		if !slices.Contains(g.limits.Tags, tailnetv1alpha1.Tag(t)) && !slices.Contains(extra, tailnetv1alpha1.Tag(t)) {
			return g.beyond(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("tag %q", t), "tags")
		}
	}
	return nil
}

// NeedsTag returns a violation if an object, which may have only granted tags, has none. It
// would belong to the user of the credential otherwise.
func (g *Grant) NeedsTag(field string, count int) *ViolationError {
	if !g.limitsTags() || count+len(g.common) > 0 {
		return nil
	}
	return g.untagged(field)
}

// Service returns a violation for the name of a Tailscale Service, with or without svc:.
func (g *Grant) Service(field, name string) *ViolationError {
	if !g.limitsServices() {
		return nil
	}
	label := strings.TrimPrefix(name, "svc:")
	for _, p := range g.limits.Services {
		// The schema allows no special character except *.
		if ok, err := path.Match(string(p), label); err == nil && ok {
			return nil
		}
	}
	return g.beyond(field, fmt.Sprintf("service %q", name), "services")
}

// Domain returns a violation for a domain that proxies resolve. A single label is refused for
// all grants, because it would capture every name of a top-level domain.
func (g *Grant) Domain(field, domain string) *ViolationError {
	if SingleLabel(domain) {
		return &ViolationError{Field: field, Problem: fmt.Sprintf("%q is a single label, which takes all names below it; name a domain of two labels or more", domain)}
	}
	return g.Within(field, domain)
}

// Within returns a violation for a domain with any number of labels, because a domain to remove
// may be older than the rule.
func (g *Grant) Within(field, domain string) *ViolationError {
	if !g.limitsDomains() || within(g.limits.Domains, domain) {
		return nil
	}
	return g.beyond(field, fmt.Sprintf("domain %q", domain), "domains")
}

// Resolves returns a violation for a domain that a Gateway's proxies resolve. Each author of a
// route of the Gateway chooses its hostnames, so a domain needs to be listed, also for a namespace
// that may use the whole credential.
func (g *Grant) Resolves(field, domain string) *ViolationError {
	if v := g.Domain(field, domain); v != nil {
		return v
	}
	if within(g.limits.Domains, domain) || within(g.domains, domain) {
		return nil
	}
	return &ViolationError{Field: field, Problem: fmt.Sprintf("the tailnet does not list a domain of %q; use another, or ask who manages the TailscaleTailnet to add it to spec.allowedNamespaces.domains", domain)}
}

// within reports whether a domain is in a list, or below a domain of the list.
func within(domains []tailnetv1alpha1.GrantedDomain, domain string) bool {
	d := canonical(domain)
	return slices.ContainsFunc(domains, func(parent tailnetv1alpha1.GrantedDomain) bool {
		return d == string(parent) || strings.HasSuffix(d, "."+string(parent))
	})
}

// WholeDNS returns a violation for a setting that affects names of all domains.
func (g *Grant) WholeDNS(field string) *ViolationError {
	if !g.limitsDomains() {
		return nil
	}
	return g.beyond(field, "a setting for all domains", "domains")
}

// SingleLabel reports whether a domain is one label, such as com or internal.
func SingleLabel(domain string) bool {
	return !strings.Contains(canonical(domain), ".")
}

// canonical returns a domain in lower case, without a wildcard and the root's dot.
func canonical(domain string) string {
	return strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(domain), "."), "*.")
}

// networking returns a violation for a networking mode of proxies.
func (g *Grant) networking(field string, networking tailnetv1alpha1.Networking) *ViolationError {
	if len(g.limits.Networking) == 0 || slices.Contains(g.limits.Networking, networking) {
		return nil
	}
	return g.beyond(field, "networking "+string(networking), "networking")
}

// privileged returns a violation for a privileged container. It needs an entry that allows it: who
// runs a command in the container has the node.
func (g *Grant) privileged(field string, k *tailnetv1alpha1.KernelSettings) *ViolationError {
	if k == nil || !ptr.Deref(k.Privileged, false) || ptr.Deref(g.limits.PrivilegedContainers, false) {
		return nil
	}
	return g.beyond(field, "a privileged container", "privilegedContainers")
}

// envFromSecret returns a violation for an environment variable of a proxy from a Secret. It needs
// an entry that allows it: the variable may be one that the proxy shows or sends, so who names the
// Secret can learn its value.
func (g *Grant) envFromSecret(field string) *ViolationError {
	if ptr.Deref(g.limits.EnvFromSecrets, false) {
		return nil
	}
	return g.beyond(field, "a value from a Secret", "envFromSecrets")
}

// staticEndpoints returns a violation for a proxy with a port on nodes, which a grant must allow by
// name: it opens the nodes to the network around them.
func (g *Grant) staticEndpoints(field string) *ViolationError {
	if ptr.Deref(g.limits.StaticEndpoints, false) {
		return nil
	}
	return g.beyond(field, "a port on the cluster's nodes", "staticEndpoints")
}

// Pods returns a violation for the settings of the pods of proxies at a field. The repositories
// of the default images are always allowed.
func (g *Grant) Pods(field string, p tailnetv1alpha1.PodSettings, defaults ...string) *ViolationError {
	vs := []*ViolationError{
		g.image(field+".image", p.Image, defaults...),
		g.networking(field+".networking", cmp.Or(p.Networking, tailnetv1alpha1.NetworkingUserspace)),
		g.privileged(field+".kernel.privileged", p.Kernel),
	}
	if p.StaticEndpoints != nil {
		vs = append(vs, g.staticEndpoints(field+".staticEndpoints"))
	}
	for i, e := range p.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			vs = append(vs, g.envFromSecret(fmt.Sprintf("%s.env[%d].valueFrom.secretKeyRef", field, i)))
		}
	}
	return firstOf(vs...)
}

func plain[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = string(s)
	}
	return out
}
