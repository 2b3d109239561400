// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Guard refuses writes that are beyond what a client's user may do in the tailnet. It is
// asked last, before a write is sent.
type Guard interface {
	// Service refuses a Tailscale Service that may not be written or deleted.
	Service(name string) error

	// Tags refuses tags that something may not be given.
	Tags(tags []string) error

	// Key refuses the tags of a key, or of a client, that may not be made or revoked.
	Key(tags []string) error

	// Device refuses a device with these tags that may not be changed or deleted.
	Device(id string, tags []string) error

	// Domain refuses a domain that devices may not be told to ask others for.
	Domain(domain string) error
}

// Guarded returns a client that shares all with this one and writes only what the guard
// lets it. Nil lets it write all.
func (c *Client) Guarded(g Guard) *Client {
	if g == nil {
		return c
	}
	out := *c
	out.guard = g
	return &out
}

// checkService returns an error if a service may not be written, or given the tags.
func (c *Client) checkService(name string, tags ...string) error {
	if c.guard == nil {
		return nil
	}
	if err := c.guard.Service(name); err != nil {
		return err
	}
	return c.guard.Tags(tags)
}

// checkTags returns an error if a key with the tags may not be made.
func (c *Client) checkTags(tags []string) error {
	if c.guard == nil {
		return nil
	}
	return c.guard.Key(tags)
}

// checkRevoke returns an error if an auth key may not be revoked. One that is gone may.
func (c *Client) checkRevoke(ctx context.Context, id string) error {
	if c.guard == nil {
		return nil
	}
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
	tags := k.Capabilities.Devices.Create.Tags
	if len(tags) == 0 {
		tags = k.Tags
	}
	return c.guard.Key(tags)
}

// checkDevice returns an error if a device may not be changed or deleted, or be given the
// tags. One that is gone may.
func (c *Client) checkDevice(ctx context.Context, nodeID string, tags ...string) error {
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

// checkDomains returns an error if devices may not be told to ask others for the domains.
func (c *Client) checkDomains(domains map[string][]string) error {
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

// wholeDNS stands for the names of all domains.
func wholeDNS() map[string][]string { return map[string][]string{".": nil} }
