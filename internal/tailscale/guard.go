// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Guard rejects writes that a client's user has no permission for. Clients call it directly
// before they send a write.
type Guard interface {
	// Service returns an error if the Tailscale Service may not be written or deleted.
	Service(name string) error

	// Tags returns an error if one of the tags may not be assigned.
	Tags(tags []string) error

	// Key returns an error if a key or an OAuth client with the tags may not be created or revoked.
	Key(tags []string) error

	// Device returns an error if a device with these tags may not be changed or deleted.
	Device(id string, tags []string) error

	// Domain returns an error if devices may not be configured to use other nameservers for the
	// domain.
	Domain(domain string) error
}

// Guarded returns a client that shares everything with this one and sends only writes that the
// guard permits. A nil guard permits all writes.
func (c *Client) Guarded(g Guard) *Client {
	if g == nil {
		return c
	}
	out := *c.core
	out.guard = g
	return &Client{&out}
}

// checkService returns an error if a service may not be written, or may not have the tags.
func (c ServicesResource) checkService(name string, tags ...string) error {
	if c.guard == nil {
		return nil
	}
	if err := c.guard.Service(name); err != nil {
		return err
	}
	return c.guard.Tags(tags)
}

// checkTags returns an error if a key with the tags may not be created.
func (c *core) checkTags(tags []string) error {
	if c.guard == nil {
		return nil
	}
	return c.guard.Key(tags)
}

// checkRevoke returns an error if a key is not an auth key, or may not be revoked. The API deletes
// OAuth clients, federated identities and API tokens by the same path, so the type is checked for
// clients without a guard, too. A key that no longer exists is permitted.
func (c KeysResource) checkRevoke(ctx context.Context, id string) error {
	k, err := c.AuthKey(ctx, id)
	if IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !IsAuthKey(*k) {
		return errors.Errorf("key %q is of the type %q and not an auth key", id, scrub(k.KeyType))
	}
	if c.guard == nil {
		return nil
	}
	tags := k.Capabilities.Devices.Create.Tags
	if len(tags) == 0 {
		tags = k.Tags
	}
	return c.guard.Key(tags)
}

// checkDevice returns an error if a device may not be changed or deleted, or may not have the tags.
// A device that no longer exists is permitted.
func (c DevicesResource) checkDevice(ctx context.Context, nodeID string, tags ...string) error {
	if c.guard == nil {
		return nil
	}
	if err := c.guard.Tags(tags); err != nil {
		return err
	}
	all, err := c.Devices(ctx, Cached)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(d Device) bool { return isDevice(d, nodeID) }); i >= 0 {
		return c.guard.Device(nodeID, all[i].Tags)
	}
	d, err := c.Device(ctx, nodeID)
	if IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.guard.Device(nodeID, d.Tags)
}

// checkDomains returns an error if devices may not be configured to use other nameservers for the
// domains.
func (c DNSResource) checkDomains(domains map[string][]string) error {
	if c.guard == nil {
		return nil
	}
	for d := range domains {
		if err := c.guard.Domain(d); err != nil {
			return err
		}
	}
	return nil
}

// wholeDNS returns the entry that stands for all domains.
func wholeDNS() map[string][]string { return map[string][]string{".": nil} }
