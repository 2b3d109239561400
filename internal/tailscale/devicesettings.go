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

// OAuth scopes of device settings.
const (
	scopeDeviceRoutes     = "devices:routes"
	scopeDeviceAttributes = "devices:posture_attributes"
)

// SetDeviceAuthorized authorizes a device in the tailnet, or revokes the authorization.
func (c DevicesResource) SetDeviceAuthorized(ctx context.Context, nodeID string, authorized bool) error {
	return c.editDevice(ctx, nodeID, func(d *Device) { d.Authorized = authorized }, func() error {
		return classify(c.api.Devices().SetAuthorized(ctx, nodeID, authorized), scopeDevices, false)
	})
}

// SetDeviceKeyExpiryDisabled disables or enables the expiry of a device's node key.
func (c DevicesResource) SetDeviceKeyExpiryDisabled(ctx context.Context, nodeID string, disabled bool) error {
	return c.editDevice(ctx, nodeID, func(d *Device) { d.KeyExpiryDisabled = disabled }, func() error {
		return classify(c.api.Devices().SetKey(ctx, nodeID, tsclient.DeviceKey{KeyExpiryDisabled: disabled}), scopeDevices, false)
	})
}

// SetDeviceName sets a device's name: a DNS label without the tailnet's domain.
func (c DevicesResource) SetDeviceName(ctx context.Context, nodeID, label string) error {
	rename := func(d *Device) {
		if _, domain, ok := strings.Cut(d.Name, "."); ok {
			d.Name = label + "." + domain
		}
	}
	return c.editDevice(ctx, nodeID, rename, func() error {
		return classify(c.api.Devices().SetName(ctx, nodeID, label), scopeDevices, false)
	})
}

// EditDeviceRoutes approves routes of a device, in the form of netip.Prefix, and withdraws the
// approval of others. All other approved routes stay, such as those of the policy's autoApprovers
// and those of an exit node: the API can only replace the whole list
// (tailscale/terraform-provider-tailscale#386), so the current one is read first. The device does
// not need to advertise the routes.
func (c DevicesResource) EditDeviceRoutes(ctx context.Context, nodeID string, approve, withdraw []string) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return c.devices.write(nodeID, func() (fold[Device], error) {
		current, err := c.api.Devices().SubnetRoutes(ctx, nodeID)
		if err != nil {
			return nil, classify(err, scopeDeviceRoutes, false)
		}
		routes := EditRoutes(current.Enabled, approve, withdraw)
		err = classify(c.api.Devices().SetSubnetRoutes(ctx, nodeID, routes), scopeDeviceRoutes, false)
		return edited(func(d *Device) { d.EnabledRoutes = slices.Clone(routes) }), err
	})
}

// EditRoutes returns routes with those to approve and without those to withdraw, sorted. It is
// never nil: the API requires a list.
func EditRoutes(current, approve, withdraw []string) []string {
	out := append([]string{}, approve...)
	for _, r := range current {
		if !slices.Contains(withdraw, r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c DevicesResource) editDevice(ctx context.Context, nodeID string, edit func(*Device), send func() error) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return c.devices.write(nodeID, func() (fold[Device], error) { return edited(edit), send() })
}

// DeviceAttributes returns a device's posture attributes by key: strings, float64s and bools. It
// always sends a request, because lists do not include them.
func (c DevicesResource) DeviceAttributes(ctx context.Context, nodeID string) (map[string]any, error) {
	a, err := c.api.Devices().GetPostureAttributes(ctx, nodeID)
	if err != nil {
		return nil, classify(err, scopeDeviceAttributes, false)
	}
	return a.Attributes, nil
}

// SetDeviceAttribute sets a custom posture attribute, key custom:NAME, without an expiry. The value
// is a string, an int64 or a bool.
func (c DevicesResource) SetDeviceAttribute(ctx context.Context, nodeID, key string, value any) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	// The client library always sends an expiry: the year 1 if there is none.
	body := map[string]any{"value": value}
	return c.raw(ctx, scopeDeviceAttributes, http.MethodPost, body, nil, "device", nodeID, "attributes", key)
}

// DeleteDeviceAttribute removes a custom posture attribute. It returns no error if the attribute
// does not exist.
func (c DevicesResource) DeleteDeviceAttribute(ctx context.Context, nodeID, key string) error {
	if err := c.checkDevice(ctx, nodeID); err != nil {
		return err
	}
	return ignoreNotFound(classify(c.api.Devices().DeletePostureAttribute(ctx, nodeID, key), scopeDeviceAttributes, false))
}
