// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailscale.com/net/tsaddr"
	"tailscale.com/util/dnsname"
)

// deviceViewLocked is a device as the API shows it.
func (s *Server) deviceViewLocked(d *device, all bool) map[string]any {
	v := map[string]any{
		"id": strconv.FormatInt(d.ID, 10), "nodeId": d.StableID, "name": d.Label + "." + s.opts.Domain,
		"addresses": []string{d.IPv4.String(), d.IPv6.String()}, "authorized": d.Authorized,
		"user": s.profile(d.user()).LoginName, "keyExpiryDisabled": d.KeyExpiryDisabled,
		"created": d.Created, "expires": time.Time{}, "isEphemeral": d.Ephemeral, "isExternal": false,
		"connectedToControl": d.online, "machineKey": d.Machine.String(), "nodeKey": d.NodeKey.String(),
		"blocksIncomingConnections": false, "updateAvailable": false, "tailnetLockError": s.lockErrorLocked(d), "tailnetLockKey": d.LockKey,
		"hostname": "", "os": "", "clientVersion": "",
	}
	if len(d.Tags) > 0 {
		v["tags"] = d.Tags
	}
	if !d.KeyExpiryDisabled || d.expired(s.now()) {
		v["expires"] = d.Expires
	}
	// The API leaves it out while the device is connected.
	if !d.online {
		v["lastSeen"] = d.LastSeen.UTC().Truncate(time.Second)
	}
	hi := d.Hostinfo
	if hi != nil {
		v["hostname"], v["os"], v["clientVersion"] = hi.Hostname, hi.OS, hi.IPNVersion
		v["blocksIncomingConnections"] = hi.ShieldsUp
	}
	if !all {
		return v
	}
	v["advertisedRoutes"], v["enabledRoutes"] = d.advertised(), nonNil(d.EnabledRoutes)
	v["sshEnabled"] = false
	eps := []string{}
	for _, e := range d.Endpoints {
		eps = append(eps, e.String())
	}
	conn := map[string]any{"endpoints": eps, "derp": "", "mappingVariesByDestIP": false, "latency": map[string]any{}, "clientSupports": map[string]any{}}
	if d.HomeDERP != 0 {
		conn["derp"] = strconv.Itoa(d.HomeDERP)
	}
	v["clientConnectivity"] = conn
	// The API leaves it out unless it is true (OpenAPI: Device), and it is not among
	// the default fields (OpenAPI: parameters.fields).
	if d.Facts.MultipleConnections {
		v["multipleConnections"] = true
	}
	if s.st.Settings["postureIdentityCollectionOn"] == true {
		v["postureIdentity"] = d.Facts.postureIdentity()
	}
	if hi != nil {
		v["distro"] = map[string]any{"name": hi.Distro, "version": hi.DistroVersion, "codeName": hi.DistroCodeName}
	}
	return v
}

func (d *device) advertised() []string {
	out := []string{}
	if d.Hostinfo != nil {
		for _, p := range d.Hostinfo.RoutableIPs {
			out = append(out, p.String())
		}
	}
	return out
}

// listDevices filters by any field that the query names, as the API does; tags
// match if one of them does.
func listDevices(c *call) {
	q := c.r.URL.Query()
	all := q.Get("fields") == "all"
	q.Del("fields")
	out := []any{}
	for _, id := range slices.Sorted(maps.Keys(c.s.st.Devices)) {
		v := c.s.deviceViewLocked(c.s.st.Devices[id], all)
		if matches(v, q) {
			out = append(out, v)
		}
	}
	c.json(map[string]any{"devices": out})
}

func matches(v map[string]any, q map[string][]string) bool {
	for k, want := range q {
		var values []string
		switch f := v[k].(type) {
		case string:
			values = []string{f}
		case bool:
			values = []string{strconv.FormatBool(f)}
		case []string:
			values = f
		}
		if !slices.ContainsFunc(values, func(h string) bool { return slices.Contains(want, h) }) {
			return false
		}
	}
	return true
}

// device finds the device of the path, or answers 404
// (abn/ansible-tailscale-admin, tests/unit/plugins/modules/test_tailscale_service.py).
func (c *call) device() *device {
	d := c.s.st.device(c.r.PathValue("device"))
	if d == nil {
		c.fail(http.StatusNotFound, "no manageable device matching this ID found")
	}
	return d
}

func getDevice(c *call) {
	if d := c.device(); d != nil {
		c.json(c.s.deviceViewLocked(d, c.r.URL.Query().Get("fields") == "all"))
	}
}

func deleteDevice(c *call) {
	if d := c.device(); d != nil {
		c.s.removeLocked(d)
		c.ok()
	}
}

// updateDevice decodes the body into req and applies it to the device.
func updateDevice[T any](c *call, apply func(d *device, req T) bool) {
	d := c.device()
	if d == nil {
		return
	}
	var req T
	if !c.decode(&req) || !apply(d, req) {
		return
	}
	c.s.deviceChangedLocked(d)
	c.ok()
}

func authorizeDevice(c *call) {
	type body struct {
		Authorized bool `json:"authorized"`
	}
	updateDevice(c, func(d *device, b body) bool {
		d.Authorized = b.Authorized
		return true
	})
}

// expireDevice leaves the time alone when the key has expired already
// (abn/ansible-tailscale-admin, tests/live/test_device_module_live.py).
func expireDevice(c *call) {
	d := c.device()
	if d == nil {
		return
	}
	if at := c.s.now().UTC(); !d.expired(at) {
		d.KeyExpiryDisabled = false
		d.Expires = at.Add(-time.Second)
		c.s.deviceChangedLocked(d)
	}
	c.ok()
}

func setDeviceKey(c *call) {
	type body struct {
		KeyExpiryDisabled bool `json:"keyExpiryDisabled"`
	}
	updateDevice(c, func(d *device, b body) bool {
		d.KeyExpiryDisabled = b.KeyExpiryDisabled
		return true
	})
}

// nameDevice pins the name; an empty one goes back to the hostname's.
func nameDevice(c *call) {
	type body struct {
		Name string `json:"name"`
	}
	updateDevice(c, func(d *device, b body) bool {
		if b.Name == "" {
			d.LabelPinned = false
			d.Label = c.s.st.freeLabel(d.Hostinfo.Hostname, d)
			return true
		}
		// A name is rewritten rather than refused: lower case, with dashes for dots
		// and underscores (abn/ansible-tailscale-admin,
		// tests/live/test_device_module_live.py).
		l := dnsname.SanitizeLabel(strings.TrimSuffix(strings.TrimSuffix(b.Name, "."), "."+c.s.opts.Domain))
		if l == "" {
			c.fail(http.StatusBadRequest, "invalid name")
			return false
		}
		if c.s.st.labelTaken(l, d) || c.s.nameHeldLocked(l) {
			// The same source, docs/troubleshooting.md.
			c.fail(http.StatusBadRequest, "name "+strconv.Quote(l)+" is already taken")
			return false
		}
		d.Label, d.LabelPinned = l, true
		return true
	})
}

// nameHeldLocked reports whether a deleted device's name is still held.
func (s *Server) nameHeldLocked(label string) bool {
	for _, g := range s.st.Graves {
		if g.Device.Label == label && s.now().Sub(g.At) < s.switches.NameHold.Duration {
			return true
		}
	}
	return false
}

func tagDevice(c *call) {
	type body struct {
		Tags []string `json:"tags"`
	}
	updateDevice(c, func(d *device, b body) bool {
		if len(b.Tags) == 0 && len(d.Tags) > 0 {
			// abn/ansible-tailscale-admin, docs/troubleshooting.md.
			c.fail(http.StatusBadRequest, "tagged nodes cannot be untagged without reauth")
			return false
		}
		if !c.ownsTags(b.Tags) {
			return false
		}
		d.Tags = slices.Sorted(slices.Values(b.Tags))
		d.KeyExpiryDisabled = d.KeyExpiryDisabled || len(d.Tags) > 0
		return true
	})
}

func setDeviceIP(c *call) {
	type body struct {
		IPv4 string `json:"ipv4"`
	}
	updateDevice(c, func(d *device, b body) bool {
		a, err := netip.ParseAddr(b.IPv4)
		if err != nil || !tsaddr.CGNATRange().Contains(a) {
			c.fail(http.StatusBadRequest, "invalid ipv4: must be in "+tsaddr.CGNATRange().String())
			return false
		}
		if a != d.IPv4 && c.s.st.addrTaken(a) {
			c.fail(http.StatusBadRequest, "invalid ipv4: already in use")
			return false
		}
		d.IPv4 = a
		return true
	})
}

func writeRoutes(c *call, d *device) {
	c.json(map[string]any{"advertisedRoutes": d.advertised(), "enabledRoutes": nonNil(d.EnabledRoutes)})
}

func getRoutes(c *call) {
	if d := c.device(); d != nil {
		writeRoutes(c, d)
	}
}

func setRoutes(c *call) {
	d := c.device()
	if d == nil {
		return
	}
	var req struct {
		Routes []string `json:"routes"`
	}
	if !c.decode(&req) {
		return
	}
	for _, r := range req.Routes {
		if p, err := netip.ParsePrefix(r); err != nil || p != p.Masked() {
			c.fail(http.StatusBadRequest, "invalid route "+strconv.Quote(r))
			return
		}
	}
	// The API sorts them (abn/ansible-tailscale-admin,
	// tests/live/test_device_module_live.py).
	d.EnabledRoutes = slices.Compact(slices.Sorted(slices.Values(req.Routes)))
	c.s.deviceChangedLocked(d)
	writeRoutes(c, d)
}
