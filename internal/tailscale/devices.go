// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// A DevicesResource calls the API for devices.
type DevicesResource struct{ *core }

// Devices returns the tailnet's devices with all fields from the shared list.
func (c DevicesResource) Devices(ctx context.Context, staleness Staleness) ([]Device, error) {
	ds, _, err := c.DevicesAt(ctx, staleness)
	return ds, err
}

// DevicesAt returns the result of Devices and the time of the list by the clock of Tailscale's API
// (the response's Date header), which lastSeen also uses. If the response has no Date, the time is
// when the request began by the local clock.
func (c DevicesResource) DevicesAt(ctx context.Context, staleness Staleness) ([]Device, time.Time, error) {
	return c.devices.get(ctx, c.maxAge(staleness))
}

func (c DevicesResource) loadDevices(ctx context.Context) ([]Device, time.Time, error) {
	// One list with all fields serves all callers.
	return listOf[Device](ctx, c.core, request{
		scope: scopeDevices, method: http.MethodGet, tailnet: true,
		path: []string{"tailnet", c.tailnet, "devices"}, query: url.Values{"fields": {"all"}},
	}, "devices")
}

// isDevice reports whether id, a node ID or a legacy ID, identifies d.
func isDevice(d Device, id string) bool { return d.NodeID == id || d.ID == id }

// Device returns a device by its stable node ID with all fields. It always sends a request.
func (c DevicesResource) Device(ctx context.Context, nodeID string) (*Device, error) {
	d, err := c.api.Devices().GetWithAllFields(ctx, nodeID)
	if err != nil {
		return nil, classify(err, scopeDevices, false)
	}
	return d, nil
}

// DeleteDevice removes a device. It returns no error if the device does not exist.
func (c DevicesResource) DeleteDevice(ctx context.Context, nodeID string) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return c.devices.write(nodeID, func() (fold[Device], error) {
		return removed[Device], ignoreNotFound(classify(c.api.Devices().Delete(ctx, nodeID), scopeDevices, false))
	})
}

// SetDeviceTags replaces a device's tags.
func (c DevicesResource) SetDeviceTags(ctx context.Context, nodeID string, tags []string) error {
	if err := c.checkDevice(ctx, nodeID, tags...); err != nil {
		return err
	}
	return c.devices.write(nodeID, func() (fold[Device], error) {
		err := classify(c.api.Devices().SetTags(ctx, nodeID, tags), scopeDevices, false)
		return edited(func(d *Device) { d.Tags = slices.Clone(tags) }), err
	})
}

// LockedOut returns why Tailnet Lock does not trust a device, and how to fix it. It returns "" if
// the device is not locked out.
func LockedOut(d Device) string {
	if d.TailnetLockError == "" {
		return ""
	}
	return "Tailnet Lock does not trust the device: " + OneLine(d.TailnetLockError) +
		"; on a trusted signing device run: tailscale lock sign " + OneLine(d.NodeKey)
}
