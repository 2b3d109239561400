// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"net/netip"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// join enters a device and returns its stable node id.
func (w *world) join(p tailnetsim.Puppet) string {
	w.Helper()
	id, err := w.sim.Join(p)
	w.ok(err)
	return id
}

// web is a device that the drivers look at.
func (w *world) web() string {
	w.Helper()
	return w.join(tailnetsim.Puppet{NodeID: "nWeb11CNTRL", Hostname: "web", Tags: []string{"tag:k8s"}, Routes: []string{"10.0.0.0/16"}})
}

// login logs a device in with a key.
func (w *world) login(authKey string) error {
	_, err := w.sim.Join(tailnetsim.Puppet{Hostname: "new", AuthKey: authKey})
	return err
}

// wantWeb is web as the client decodes it, without its random fields.
func wantWeb() tailscale.Device {
	return tailscale.Device{
		Name: "web.tail1234.ts.net", NodeID: "nWeb11CNTRL", Authorized: true, User: "tagged-devices", Tags: []string{"tag:k8s"},
		KeyExpiryDisabled: true, ClientVersion: "1.102.5", Hostname: "web", ConnectedToControl: true, OS: "linux",
	}
}

// wantWebAll is wantWeb with the fields that are answered on request.
func wantWebAll() tailscale.Device {
	d := wantWeb()
	d.AdvertisedRoutes, d.EnabledRoutes = []string{"10.0.0.0/16"}, []string{}
	d.ClientConnectivity = &tailscale.ClientConnectivity{Endpoints: []string{}, DERPLatency: map[string]tailscale.DERPRegion{}}
	d.Distro = &tailscale.Distro{}
	return d
}

// wantDevice compares a device. Its random fields only have to be there.
func (w *world) wantDevice(want, got tailscale.Device) {
	w.Helper()
	w.want(want, got, nil, cmpopts.IgnoreFields(tailscale.Device{}, "Addresses", "ID", "Created", "Expires", "MachineKey", "NodeKey", "TailnetLockKey"))
	if len(got.Addresses) != 2 {
		w.Fatalf("want two addresses, got %v", got.Addresses)
	}
	for _, a := range got.Addresses {
		_, err := netip.ParseAddr(a)
		w.ok(err)
	}
	if got.ID == "" || got.MachineKey == "" || got.NodeKey == "" {
		w.Errorf("want an id and keys, got %+v", got)
	}
	w.recent(got.Created.Time)
}

// get returns web.
func (w *world) get() tailscale.Device {
	w.Helper()
	d, err := w.c.Devices().GetWithAllFields(w.ctx, "nWeb11CNTRL")
	w.ok(err)
	return *d
}

var deviceDrivers = map[string]driver{
	"Devices.Get": func(w *world) {
		id := w.web()
		d, err := w.c.Devices().Get(w.ctx, id)
		w.ok(err)
		w.wantDevice(wantWeb(), *d)
		byOldID, err := w.c.Devices().Get(w.ctx, d.ID)
		w.want(d, byOldID, err)
		_, err = w.c.Devices().Get(w.ctx, "nNobody11CNTRL")
		w.gone(err)
	},
	"Devices.GetWithAllFields": func(w *world) {
		w.web()
		w.wantDevice(wantWebAll(), w.get())
	},
	"Devices.List": func(w *world) {
		w.web()
		w.join(tailnetsim.Puppet{Hostname: "laptop", OS: "macOS", Offline: true})
		for _, c := range []struct {
			options []tailscale.ListDevicesOptions
			want    []string
		}{
			{want: []string{"web", "laptop"}},
			{options: []tailscale.ListDevicesOptions{tailscale.WithFilter("tags", []string{"tag:k8s"})}, want: []string{"web"}},
			{options: []tailscale.ListDevicesOptions{tailscale.WithFilter("os", []string{"macOS"})}, want: []string{"laptop"}},
			{options: []tailscale.ListDevicesOptions{tailscale.WithFilter("os", []string{"macOS"}), tailscale.WithFilter("tags", []string{"tag:k8s"})}},
			{options: []tailscale.ListDevicesOptions{tailscale.WithFilter("isEphemeral", []string{"true"})}},
		} {
			ds, err := w.c.Devices().List(w.ctx, c.options...)
			w.ok(err)
			var got []string
			for _, d := range ds {
				got = append(got, d.Hostname)
			}
			w.want(c.want, got, nil)
		}
		ds, err := w.c.Devices().List(w.ctx, tailscale.WithFields(tailscale.IncludeFieldsAll))
		w.ok(err)
		w.wantDevice(wantWebAll(), ds[0])
		ds, err = w.c.Devices().List(w.ctx, tailscale.WithFields(tailscale.IncludeFieldsDefault))
		w.ok(err)
		w.wantDevice(wantWeb(), ds[0])
		if offline := ds[1]; offline.ConnectedToControl || offline.LastSeen == nil {
			w.Errorf("want a device that was seen and is away, got %+v", offline)
		}
	},
	"Devices.ListWithAllFields": func(w *world) {
		w.web()
		//nolint:staticcheck // All methods are driven, deprecated ones too.
		ds, err := w.c.Devices().ListWithAllFields(w.ctx)
		w.ok(err)
		w.want(1, len(ds), nil)
		w.wantDevice(wantWebAll(), ds[0])
	},
	"Devices.Delete": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().Delete(w.ctx, id))
		_, err := w.c.Devices().Get(w.ctx, id)
		w.gone(err)
		w.gone(w.c.Devices().Delete(w.ctx, id))
	},
	"Devices.SetAuthorized": func(w *world) {
		id := w.web()
		for _, authorized := range []bool{false, true} {
			w.ok(w.c.Devices().SetAuthorized(w.ctx, id, authorized))
			w.want(authorized, w.get().Authorized, nil)
		}
	},
	"Devices.SetName": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().SetName(w.ctx, id, "front"))
		d := w.get()
		w.want([]string{"front.tail1234.ts.net", "web"}, []string{d.Name, d.Hostname}, nil)
		w.ok(w.c.Devices().SetName(w.ctx, id, ""))
		w.want("web.tail1234.ts.net", w.get().Name, nil)
	},
	"Devices.SetTags": func(w *world) {
		w.ok(w.c.PolicyFile().Set(w.ctx, twoTags, ""))
		id := w.web()
		w.ok(w.c.Devices().SetTags(w.ctx, id, []string{"tag:web", "tag:k8s"}))
		w.want([]string{"tag:k8s", "tag:web"}, w.get().Tags, nil)
	},
	"Devices.SetKey": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().SetKey(w.ctx, id, tailscale.DeviceKey{KeyExpiryDisabled: false}))
		d := w.get()
		w.want(false, d.KeyExpiryDisabled, nil)
		if !d.Expires.After(time.Now()) {
			w.Errorf("want a key that expires later, got %v", d.Expires)
		}
		w.ok(w.c.Devices().SetKey(w.ctx, id, tailscale.DeviceKey{KeyExpiryDisabled: true}))
		w.want(true, w.get().KeyExpiryDisabled, nil)
	},
	"Devices.SetIPv4Address": func(w *world) {
		id := w.web()
		original := w.get().Addresses
		w.ok(w.c.Devices().SetIPv4Address(w.ctx, id, "100.80.0.7"))
		w.want([]string{"100.80.0.7", original[1]}, w.get().Addresses, nil)
	},
	"Devices.SetSubnetRoutes": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().SetSubnetRoutes(w.ctx, id, []string{"10.0.0.0/16", "192.168.1.0/24"}))
		w.want([]string{"10.0.0.0/16", "192.168.1.0/24"}, w.get().EnabledRoutes, nil, cmpopts.SortSlices(func(a, b string) bool { return a < b }))
		w.ok(w.c.Devices().SetSubnetRoutes(w.ctx, id, []string{}))
		w.want([]string{}, w.get().EnabledRoutes, nil)
	},
	"Devices.SubnetRoutes": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().SetSubnetRoutes(w.ctx, id, []string{"192.168.1.0/24"}))
		got, err := w.c.Devices().SubnetRoutes(w.ctx, id)
		w.want(&tailscale.DeviceRoutes{Advertised: []string{"10.0.0.0/16"}, Enabled: []string{"192.168.1.0/24"}}, got, err)
	},
	"Devices.GetPostureAttributes": func(w *world) {
		got, err := w.c.Devices().GetPostureAttributes(w.ctx, w.web())
		w.ok(err)
		w.want([]any{"linux", "1.102.5"}, []any{got.Attributes["node:os"], got.Attributes["node:tsVersion"]}, nil)
	},
	"Devices.SetPostureAttribute": func(w *world) {
		id := w.web()
		expiry := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		w.ok(w.c.Devices().SetPostureAttribute(w.ctx, id, "custom:score", tailscale.DevicePostureAttributeRequest{
			Value: 80, Expiry: tailscale.Time{Time: expiry}, Comment: "for an hour",
		}))
		// Without an expiry the client sends that of the year 1.
		w.ok(w.c.Devices().SetPostureAttribute(w.ctx, id, "custom:disk", tailscale.DevicePostureAttributeRequest{Value: true}))
		got, err := w.c.Devices().GetPostureAttributes(w.ctx, id)
		w.ok(err)
		w.want([]any{float64(80), true}, []any{got.Attributes["custom:score"], got.Attributes["custom:disk"]}, nil)
		w.want(map[string]tailscale.Time{"custom:score": {Time: expiry}}, got.Expiries, nil)
	},
	"Devices.DeletePostureAttribute": func(w *world) {
		id := w.web()
		w.ok(w.c.Devices().SetPostureAttribute(w.ctx, id, "custom:score", tailscale.DevicePostureAttributeRequest{Value: "high"}))
		w.ok(w.c.Devices().DeletePostureAttribute(w.ctx, id, "custom:score"))
		got, err := w.c.Devices().GetPostureAttributes(w.ctx, id)
		w.ok(err)
		if v, ok := got.Attributes["custom:score"]; ok {
			w.Errorf("the attribute is still there: %v", v)
		}
	},
}
