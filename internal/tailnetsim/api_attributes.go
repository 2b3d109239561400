// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An attribute of a device's posture, set through the API.
type attribute struct {
	Value   any       `json:"value"`
	Expiry  time.Time `json:"expiry,omitzero"`
	Comment string    `json:"comment,omitempty"`
}

// maxAttributeComment bounds the comment of an attribute (OpenAPI:
// paths./device/{deviceId}/attributes/{attributeKey}).
const maxAttributeComment = 200

var (
	// attributeKey and attributeString are as in the OpenAPI document.
	attributeKey    = regexp.MustCompile(`^custom:[a-zA-Z0-9_:]{1,121}$`)
	attributeString = regexp.MustCompile(`^[a-zA-Z0-9_.]{0,50}$`)
)

func isAttributeValue(v any) bool {
	switch v := v.(type) {
	case string:
		return attributeString.MatchString(v)
	case float64:
		return v == math.Trunc(v) && math.Abs(v) < 1<<53
	case bool:
		return true
	}
	return false
}

func getAttributes(c *call) {
	if d := c.device(); d != nil {
		writeAttributes(c, d)
	}
}

// writeAttributes responds with all attributes of a device, and the expiry of those that
// expire. Expired attributes are omitted.
func writeAttributes(c *call, d *device) {
	attrs, expiries := map[string]any{}, map[string]string{}
	if hi := d.Hostinfo; hi != nil {
		attrs["node:os"], attrs["node:tsVersion"] = hi.OS, hi.IPNVersion
	}
	at := c.s.now()
	maps.DeleteFunc(d.Attributes, func(_ string, a attribute) bool { return !a.Expiry.IsZero() && a.Expiry.Before(at) })
	for k, a := range d.Attributes {
		attrs[k] = a.Value
		if !a.Expiry.IsZero() {
			expiries[k] = a.Expiry.UTC().Format(time.RFC3339Nano)
		}
	}
	out := map[string]any{"attributes": attrs}
	if len(expiries) > 0 {
		out["expiries"] = expiries
	}
	c.json(out)
}

// An attributeRequest sets an attribute. The Go client sends an empty string for no
// expiry.
type attributeRequest struct {
	Value   any    `json:"value"`
	Expiry  string `json:"expiry"`
	Comment string `json:"comment"`
}

// attribute checks a request for key, and answers 400 if it is wrong. The words of
// the refusals are assumptions.
func (c *call) attribute(key string, r attributeRequest) (attribute, bool) {
	a := attribute{Value: r.Value, Comment: r.Comment}
	if !attributeKey.MatchString(key) {
		c.fail(http.StatusBadRequest, "attribute keys must begin with custom: and have at most 128 letters, digits, underscores and colons")
		return a, false
	}
	if !isAttributeValue(r.Value) {
		c.fail(http.StatusBadRequest, "attribute value must be a boolean, an integer, or a string of at most 50 letters, digits, underscores and periods")
		return a, false
	}
	if len(r.Comment) > maxAttributeComment {
		c.fail(http.StatusBadRequest, "comment must not be longer than 200 characters")
		return a, false
	}
	if r.Expiry != "" {
		t, err := time.Parse(time.RFC3339, r.Expiry)
		if err != nil {
			c.fail(http.StatusBadRequest, "invalid expiry "+strconv.Quote(r.Expiry))
			return a, false
		}
		a.Expiry = t
	}
	return a, fits(c, key, a)
}

// fits reports whether the tailnet has no other attribute whose key differs only in case or
// whose value has another type (OpenAPI: parameters.attributeKey), and responds with an error
// if it has one.
func fits(c *call, key string, a attribute) bool {
	for _, d := range c.s.st.Devices {
		for k, existing := range d.Attributes {
			if !strings.EqualFold(k, key) {
				continue
			}
			if k != key || reflect.TypeOf(existing.Value) != reflect.TypeOf(a.Value) {
				c.fail(http.StatusBadRequest, "attribute "+strconv.Quote(k)+" exists with another type or spelling")
				return false
			}
		}
	}
	return true
}

func (d *device) setAttribute(key string, a attribute) {
	if d.Attributes == nil {
		d.Attributes = map[string]attribute{}
	}
	d.Attributes[key] = a
}

func setAttribute(c *call) {
	d := c.device()
	if d == nil {
		return
	}
	var req attributeRequest
	if !c.decode(&req) {
		return
	}
	key := c.r.PathValue("key")
	a, ok := c.attribute(key, req)
	if !ok {
		return
	}
	d.setAttribute(key, a)
	c.s.dirty()
	writeAttributes(c, d)
}

func deleteAttribute(c *call) {
	if d := c.device(); d != nil {
		delete(d.Attributes, c.r.PathValue("key"))
		c.s.dirty()
		c.ok()
	}
}

// patchAttributes sets attributes of many devices, all or none; null deletes one
// (OpenAPI: paths./tailnet/{tailnet}/device-attributes).
func patchAttributes(c *call) {
	var req struct {
		Nodes   map[string]map[string]json.RawMessage `json:"nodes"`
		Comment string                                `json:"comment"`
	}
	if !c.decode(&req) {
		return
	}
	var apply []func()
	for _, id := range slices.Sorted(maps.Keys(req.Nodes)) {
		d := c.s.st.device(id)
		if d == nil {
			c.fail(http.StatusNotFound, "no manageable device matching this ID found")
			return
		}
		for _, key := range slices.Sorted(maps.Keys(req.Nodes[id])) {
			raw := req.Nodes[id][key]
			if string(raw) == "null" {
				apply = append(apply, func() { delete(d.Attributes, key) })
				continue
			}
			r := attributeRequest{Comment: req.Comment}
			if err := json.Unmarshal(raw, &r); err != nil {
				c.fail(http.StatusBadRequest, "invalid JSON in request body: "+err.Error())
				return
			}
			a, ok := c.attribute(key, r)
			if !ok {
				return
			}
			apply = append(apply, func() { d.setAttribute(key, a) })
		}
	}
	for _, f := range apply {
		f()
	}
	c.s.dirty()
	c.ok()
}
