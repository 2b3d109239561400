// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"
)

// Devices returns the tailnet's devices from the shared list. The list may be
// as old as maxAge; zero means the age that the client was made with.
func (c *Client) Devices(ctx context.Context, maxAge time.Duration) ([]Device, error) {
	if maxAge == 0 {
		maxAge = c.listMaxAge
	}
	return c.devices.get(ctx, maxAge)
}

// Device returns a device by its stable node ID, fresh.
func (c *Client) Device(ctx context.Context, nodeID string) (*Device, error) {
	d, err := c.api.Devices().Get(ctx, nodeID)
	if err != nil {
		return nil, classify(err, scopeDevices, false)
	}
	return d, nil
}

// DeleteDevice removes a device. One that does not exist is no error.
func (c *Client) DeleteDevice(ctx context.Context, nodeID string) error {
	defer c.devices.expire()
	return ignoreNotFound(classify(c.api.Devices().Delete(ctx, nodeID), scopeDevices, false))
}

// SetDeviceTags replaces a device's tags.
func (c *Client) SetDeviceTags(ctx context.Context, nodeID string, tags []string) error {
	defer c.devices.expire()
	return classify(c.api.Devices().SetTags(ctx, nodeID, tags), scopeDevices, false)
}
