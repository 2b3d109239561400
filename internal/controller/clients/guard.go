// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A guard limits a client to a grant, whichever names and IDs a controller reads from an object's
// annotations, its status, or the tailnet.
type guard struct {
	grant *allow.Grant

	// record is the name of the cluster's own service next to a shared one, which is derived from
	// the shared service's name. It is empty if there is none.
	record string

	// machine reports that devices are proxies, which may only have tags of the tailnet.
	machine bool
}

// guard returns the guard that limits a client to a grant, or nil if there are no limits.
func (c *Connector) guard(pc config, mg resource.ModernManaged, g *allow.Grant) tailscale.Guard {
	if !g.Limited() {
		return nil
	}
	out := &guard{grant: g}
	switch o := mg.(type) {
	case *v1alpha1.VIPService:
		out.record = registry.RecordName(string(o.Spec.ForProvider.Name), pc.clusterID())
	case *v1alpha1.Machine:
		out.machine = true
	}
	return out
}

// Service implements tailscale.Guard.
func (g *guard) Service(name string) error {
	if name == g.record {
		// The shared service's name was checked already.
		return nil
	}
	return orNil(g.grant.Service("service "+name, name))
}

// Tags implements tailscale.Guard.
func (g *guard) Tags(tags []string) error { return orNil(allow.Tags(g.grant, "tags", tags)) }

// Key implements tailscale.Guard.
func (g *guard) Key(tags []string) error {
	if len(tags) == 0 {
		return orNil(allow.TagsOf(g.grant, "tags of the key", tags))
	}
	return orNil(allow.Tags(g.grant, "tags of the key", tags))
}

// Device implements tailscale.Guard.
func (g *guard) Device(id string, tags []string) error {
	if g.machine && len(tags) > 0 {
		return orNil(allow.Tags(g.grant, "tags of device "+id, tags))
	}
	return orNil(allow.TagsOf(g.grant, "tags of device "+id, tags))
}

// Domain implements tailscale.Guard.
func (g *guard) Domain(domain string) error {
	return orNil(g.grant.Within("domain", domain))
}

// orNil returns a violation as an error. A nil pointer in an interface is not nil.
func orNil(v *allow.ViolationError) error {
	if v == nil {
		return nil
	}
	return v
}
