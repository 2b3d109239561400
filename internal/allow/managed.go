// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Managed returns a violation of a managed resource: of its kind, or of the tags, services and
// domains in its spec. Nil means that it is within the grant.
func (g *Grant) Managed(mg resource.ModernManaged) *ViolationError {
	if v := g.Kind("kind", KindOf(mg)); v != nil {
		return v
	}
	const p = "spec.forProvider."
	switch o := mg.(type) {
	case *tailnetv1alpha1.AuthKey:
		return firstOf(Tags(g, p+"tags", o.Spec.ForProvider.Tags), g.NeedsTag(p+"tags", len(o.Spec.ForProvider.Tags)))
	case *tailnetv1alpha1.Device:
		if len(o.Spec.ForProvider.Tags) == 0 {
			return nil
		}
		return TagsOf(g, p+"tags", o.Spec.ForProvider.Tags)
	case *tailnetv1alpha1.DNS:
		return g.dns(p, o.Spec.ForProvider)
	case *tailnetv1alpha1.FederatedIdentity:
		return firstOf(Tags(g, p+"tags", o.Spec.ForProvider.Tags), g.NeedsTag(p+"tags", len(o.Spec.ForProvider.Tags)))
	case *tailnetv1alpha1.Machine:
		return Tags(g, p+"tags", o.Spec.ForProvider.Tags)
	case *tailnetv1alpha1.OAuthClient:
		return firstOf(Tags(g, p+"tags", o.Spec.ForProvider.Tags), g.NeedsTag(p+"tags", len(o.Spec.ForProvider.Tags)))
	case *tailnetv1alpha1.SplitDNS:
		return g.Domains(p+"domains", o.Spec.ForProvider.Domains)
	case *tailnetv1alpha1.VIPService:
		f := o.Spec.ForProvider
		return firstOf(g.Service(p+"name", string(f.Name)),
			Tags(g, p+"tags", f.Tags), Tags(g, p+"recordTags", f.RecordTags), Tags(g, p+"hostTags", f.HostTags))
	}
	return nil
}

// Domains returns a violation for domains that proxies resolve.
func (g *Grant) Domains(field string, domains []string) *ViolationError {
	for i, d := range domains {
		if v := g.Domain(fmt.Sprintf("%s[%d]", field, i), d); v != nil {
			return v
		}
	}
	return nil
}

// dns returns a violation for settings of the whole tailnet. Without a limit of domains, the
// namespace may choose them, including single labels.
func (g *Grant) dns(p string, f tailnetv1alpha1.DNSParameters) *ViolationError {
	switch {
	case !g.limitsDomains():
		return nil
	case f.Nameservers != nil:
		return g.WholeDNS(p + "nameservers")
	case f.Preferences != nil:
		return g.WholeDNS(p + "preferences")
	}
	if f.SearchPaths != nil {
		if v := g.Domains(p+"searchPaths", *f.SearchPaths); v != nil {
			return v
		}
	}
	for i, s := range f.SplitDNS {
		if v := g.Domain(fmt.Sprintf("%ssplitDNS[%d].domain", p, i), s.Domain); v != nil {
			return v
		}
	}
	return nil
}

// KindOf returns the kind of a managed resource.
func KindOf(mg resource.ModernManaged) string {
	return reflect.TypeOf(mg).Elem().Name()
}

// Claims returns a text with all settings of a managed resource that grants can limit, and the ID of
// the object in the tailnet that it names: it changes only when one of these changes.
func Claims(mg resource.ModernManaged) string {
	parts := []string{KindOf(mg)}
	add := func(label string, values ...string) {
		values = slices.Clone(values)
		slices.Sort(values)
		parts = append(parts, label, strings.Join(values, " "))
	}
	switch o := mg.(type) {
	case *tailnetv1alpha1.Machine:
		add("tags", plain(o.Spec.ForProvider.Tags)...)
	case *tailnetv1alpha1.SplitDNS:
		add("domains", o.Spec.ForProvider.Domains...)
	case *tailnetv1alpha1.VIPService:
		f := o.Spec.ForProvider
		add("name", string(f.Name))
		add("tags", plain(f.Tags)...)
		add("recordTags", plain(f.RecordTags)...)
		add("hostTags", plain(f.HostTags)...)
	case *tailnetv1alpha1.Device:
		add("id", o.Spec.ForProvider.NodeID, xpmeta.GetExternalName(mg))
		add("tags", plain(o.Spec.ForProvider.Tags)...)
	case *tailnetv1alpha1.AuthKey:
		add("id", xpmeta.GetExternalName(mg))
		add("tags", plain(o.Spec.ForProvider.Tags)...)
	case *tailnetv1alpha1.DNS:
		for _, s := range o.Spec.ForProvider.SplitDNS {
			add("domain", s.Domain)
		}
	default:
		add("id", xpmeta.GetExternalName(mg))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// firstOf returns the first violation.
func firstOf(vs ...*ViolationError) *ViolationError {
	for _, v := range vs {
		if v != nil {
			return v
		}
	}
	return nil
}

// Keeping returns the grant extended with the settings of a managed resource, so that a
// resource of an earlier grant can be cleaned up.
func (g *Grant) Keeping(mg resource.ModernManaged) *Grant {
	out := *g
	keepTags := func(tags []tailnetv1alpha1.Tag) {
		if g.limitsTags() {
			out.limits.Tags = slices.Concat(out.limits.Tags, tags)
		}
	}
	switch o := mg.(type) {
	case *tailnetv1alpha1.AuthKey:
		keepTags(o.Spec.ForProvider.Tags)
	case *tailnetv1alpha1.Device:
		keepTags(o.Spec.ForProvider.Tags)
	case *tailnetv1alpha1.Machine:
		keepTags(o.Spec.ForProvider.Tags)
	case *tailnetv1alpha1.SplitDNS:
		for _, d := range o.Spec.ForProvider.Domains {
			if g.limitsDomains() {
				out.limits.Domains = append(slices.Clip(out.limits.Domains), tailnetv1alpha1.GrantedDomain(canonical(d)))
			}
		}
	case *tailnetv1alpha1.VIPService:
		keepTags(slices.Concat(o.Spec.ForProvider.Tags, o.Spec.ForProvider.RecordTags))
		if g.limitsServices() {
			name := strings.TrimPrefix(string(o.Spec.ForProvider.Name), "svc:")
			out.limits.Services = append(slices.Clip(out.limits.Services), tailnetv1alpha1.ServicePattern(name))
		}
	}
	return &out
}

// None returns the grant of a namespace that may no longer use a tailnet. In addition to kept
// settings, it allows only the tailnet's default tags.
func None(common []tailnetv1alpha1.Tag) *Grant { return &Grant{closed: true, common: common} }
