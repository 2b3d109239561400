// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestDeviceSettings(t *testing.T) {
	sim := simtest.StartAPI(t)
	c, ctx := keysClient(t, sim.URL, time.Hour), t.Context()
	id, err := sim.Join(tailnetsim.Puppet{Hostname: "router", Routes: []string{"10.0.0.0/16"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Devices().Devices(ctx, Cached); err != nil {
		t.Fatal(err)
	}
	for setting, set := range map[string]func() error{
		"Authorized":        func() error { return c.Devices().SetDeviceAuthorized(ctx, id, false) },
		"KeyExpiryDisabled": func() error { return c.Devices().SetDeviceKeyExpiryDisabled(ctx, id, true) },
		"Name":              func() error { return c.Devices().SetDeviceName(ctx, id, "gateway") },
		"Routes":            func() error { return c.Devices().EditDeviceRoutes(ctx, id, []string{"10.0.0.0/16"}, nil) },
	} {
		if err := set(); err != nil {
			t.Errorf("SetDevice%s(...): %v", setting, err)
		}
	}
	type seen struct {
		Name                          string
		Authorized, KeyExpiryDisabled bool
		Routes                        []string
	}
	summary := func(d Device) seen {
		name, _, _ := strings.Cut(d.Name, ".")
		return seen{Name: name, Authorized: d.Authorized, KeyExpiryDisabled: d.KeyExpiryDisabled, Routes: d.EnabledRoutes}
	}
	want := seen{Name: "gateway", KeyExpiryDisabled: true, Routes: []string{"10.0.0.0/16"}}
	fresh, err := c.Devices().Device(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, summary(*fresh)); diff != "" {
		t.Errorf("Device(...): -want, +got:\n%s", diff)
	}
	all, err := c.Devices().Devices(ctx, Cached)
	if err != nil || len(all) != 1 {
		t.Fatalf("Devices(...): %d, %v", len(all), err)
	}
	if diff := cmp.Diff(want, summary(all[0])); diff != "" {
		t.Errorf("Devices(...) follow writes: -want, +got:\n%s", diff)
	}
	if n := sim.Calls()["GET /api/v2/tailnet/{tailnet}/devices"]; n != 1 {
		t.Errorf("want one list call, got %d", n)
	}
	if err := c.Devices().EditDeviceRoutes(ctx, id, nil, []string{"10.0.0.0/16"}); err != nil {
		t.Errorf("EditDeviceRoutes(...) that leaves no route: %v", err)
	}
}

func TestDeviceAttributes(t *testing.T) {
	sim := simtest.StartAPI(t)
	c, ctx := keysClient(t, sim.URL, time.Hour), t.Context()
	id, err := sim.Join(tailnetsim.Puppet{Hostname: "router"})
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]any{"custom:tier": "gold", "custom:level": int64(3), "custom:ok": true, "custom:gone": "soon"} {
		if err := c.Devices().SetDeviceAttribute(ctx, id, k, v); err != nil {
			t.Fatalf("SetDeviceAttribute(...): %v", err)
		}
	}
	for range 2 {
		if err := c.Devices().DeleteDeviceAttribute(ctx, id, "custom:gone"); err != nil {
			t.Fatalf("DeleteDeviceAttribute(...): %v", err)
		}
	}
	got, err := c.Devices().DeviceAttributes(ctx, id)
	if err != nil {
		t.Fatalf("DeviceAttributes(...): %v", err)
	}
	for k := range got {
		if strings.HasPrefix(k, "node:") {
			delete(got, k)
		}
	}
	want := map[string]any{"custom:tier": "gold", "custom:level": float64(3), "custom:ok": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DeviceAttributes(...): -want, +got:\n%s", diff)
	}
	if err := c.Devices().SetDeviceAttribute(ctx, id, "node:os", "mine"); ClassOf(err) != ClassInvalid {
		t.Errorf("SetDeviceAttribute(...) of an attribute that is not custom: want Invalid, got %v", err)
	}
}

func TestDeviceScopes(t *testing.T) {
	sim := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Clients[0].Scopes = []string{"services"} })
	c, ctx := keysClient(t, sim.URL, time.Hour), t.Context()
	cases := map[string]struct {
		scope string
		call  func() error
	}{
		"Authorized": {scope: "devices:core", call: func() error { return c.Devices().SetDeviceAuthorized(ctx, "n1", true) }},
		"Key":        {scope: "devices:core", call: func() error { return c.Devices().SetDeviceKeyExpiryDisabled(ctx, "n1", true) }},
		"Name":       {scope: "devices:core", call: func() error { return c.Devices().SetDeviceName(ctx, "n1", "a") }},
		"Routes":     {scope: "devices:routes", call: func() error { return c.Devices().EditDeviceRoutes(ctx, "n1", nil, nil) }},
		"Attributes": {scope: "devices:posture_attributes", call: func() error { _, err := c.Devices().DeviceAttributes(ctx, "n1"); return err }},
		"Attribute":  {scope: "devices:posture_attributes", call: func() error { return c.Devices().SetDeviceAttribute(ctx, "n1", "custom:a", true) }},
		"AuthKeys":   {scope: "auth_keys", call: func() error { _, err := c.Keys().AuthKeys(ctx, Cached); return err }},
		"AuthKey": {scope: "auth_keys", call: func() error {
			_, err := c.Keys().CreateAuthKey(ctx, AuthKeyRequest{Tags: []string{"tag:k8s"}, Expiry: time.Hour})
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.call()
			if ClassOf(err) != ClassForbidden || !strings.Contains(err.Error(), `"`+tc.scope+`"`) {
				t.Errorf("want an error that names the scope %s, got %v", tc.scope, err)
			}
		})
	}
}
