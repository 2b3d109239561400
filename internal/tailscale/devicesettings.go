// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"slices"
	"strings"

	tsclient "tailscale.com/client/tailscale/v2"
)

// OAuth scopes of parts of devices.
const (
	scopeDeviceRoutes     = "devices:routes"
	scopeDeviceAttributes = "devices:posture_attributes"
)

// SetDeviceAuthorized lets a device into the tailnet, or locks it out.
func (c *Client) SetDeviceAuthorized(ctx context.Context, nodeID string, authorized bool) error {
	return c.editDevice(ctx, nodeID, func(d *Device) { d.Authorized = authorized }, func() error {
		return classify(c.api.Devices().SetAuthorized(ctx, nodeID, authorized), scopeDevices, false)
	})
}

// SetDeviceKeyExpiryDisabled says whether a device's node key never expires.
func (c *Client) SetDeviceKeyExpiryDisabled(ctx context.Context, nodeID string, disabled bool) error {
	return c.editDevice(ctx, nodeID, func(d *Device) { d.KeyExpiryDisabled = disabled }, func() error {
		return classify(c.api.Devices().SetKey(ctx, nodeID, tsclient.DeviceKey{KeyExpiryDisabled: disabled}), scopeDevices, false)
	})
}

// SetDeviceName names a device by a DNS label, without the tailnet's domain.
func (c *Client) SetDeviceName(ctx context.Context, nodeID, label string) error {
	rename := func(d *Device) {
		if _, domain, ok := strings.Cut(d.Name, "."); ok {
			d.Name = label + "." + domain
		}
	}
	return c.editDevice(ctx, nodeID, rename, func() error {
		return classify(c.api.Devices().SetName(ctx, nodeID, label), scopeDevices, false)
	})
}

// SetDeviceRoutes replaces the subnet routes that are approved for a device. They
// need not be advertised.
func (c *Client) SetDeviceRoutes(ctx context.Context, nodeID string, routes []string) error {
	// The API wants a list, not null.
	routes = append([]string{}, routes...)
	return c.editDevice(ctx, nodeID, func(d *Device) { d.EnabledRoutes = slices.Clone(routes) }, func() error {
		return classify(c.api.Devices().SetSubnetRoutes(ctx, nodeID, routes), scopeDeviceRoutes, false)
	})
}

func (c *Client) editDevice(ctx context.Context, nodeID string, edit func(*Device), do func() error) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return c.devices.write(nodeID, func() (fold[Device], error) { return edited(edit), do() })
}

// DeviceAttributes returns a device's posture attributes, fresh: strings, float64s
// and bools by key. No list has them.
func (c *Client) DeviceAttributes(ctx context.Context, nodeID string) (map[string]any, error) {
	a, err := c.api.Devices().GetPostureAttributes(ctx, nodeID)
	if err != nil {
		return nil, classify(err, scopeDeviceAttributes, false)
	}
	return a.Attributes, nil
}

// SetDeviceAttribute sets a custom posture attribute, key custom:NAME, for good.
// The value is a string, an int64 or a bool.
func (c *Client) SetDeviceAttribute(ctx context.Context, nodeID, key string, value any) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	// The client library always sends an expiry, the year 1 if there is none.
	in := map[string]any{"value": value}
	return c.raw(ctx, scopeDeviceAttributes, http.MethodPost, in, nil, "device", nodeID, "attributes", key)
}

// DeleteDeviceAttribute removes a custom posture attribute. One that does not
// exist is no error.
func (c *Client) DeleteDeviceAttribute(ctx context.Context, nodeID, key string) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return ignoreNotFound(classify(c.api.Devices().DeletePostureAttribute(ctx, nodeID, key), scopeDeviceAttributes, false))
}
