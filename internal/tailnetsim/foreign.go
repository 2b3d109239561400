// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// foreignFields are fields of the API's objects that this simulator does not know, by the path of
// the object: a later version of Tailscale has more fields than today's, and people and other
// programs set them. A reply has them, a PATCH keeps those that it does not name, and every other
// write replaces them with those in its body.
type foreignFields map[string]map[string]json.RawMessage

// foreignPath returns the key of the object that a request is about. Services have two spellings.
func foreignPath(r *http.Request) string {
	return strings.Replace(r.URL.Path, "/vip-services/", "/services/", 1)
}

// SetForeign gives the object at a path of the API, such as /api/v2/tailnet/-/dns/preferences,
// fields that the simulator does not know.
func (s *Server) SetForeign(path string, fields map[string]json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign[strings.Replace(path, "/vip-services/", "/services/", 1)] = maps.Clone(fields)
}

// Foreign returns the fields at a path that the simulator does not know.
func (s *Server) Foreign(path string) map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.foreign[strings.Replace(path, "/vip-services/", "/services/", 1)])
}

// refusesForeign reports whether a write has fields that the tailnet does not accept, and answers
// if so. That the API does so is an assumption.
func (c *call) refusesForeign() bool {
	fields := c.s.foreign[foreignPath(c.r)]
	if c.r.Method == http.MethodGet || !c.s.switches.RefuseForeignFields {
		return false
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(c.body, &input) != nil {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(input)) {
		if _, foreign := fields[name]; foreign {
			c.fail(http.StatusBadRequest, "unknown field "+name)
			return true
		}
	}
	return false
}

// keepForeign stores the unknown fields of a write that succeeded, and adds them to the reply.
func (c *call) keepForeign(b *reply) {
	path := foreignPath(c.r)
	fields, ok := c.s.foreign[path]
	if !ok || b.status != http.StatusOK {
		return
	}
	if c.r.Method != http.MethodGet {
		var input map[string]json.RawMessage
		// A body that is no object has no fields.
		_ = json.Unmarshal(c.body, &input)
		for name := range fields {
			v, exists := input[name]
			switch {
			case exists:
				fields[name] = v
			case c.r.Method != http.MethodPatch:
				delete(fields, name)
			}
		}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(b.body, &object) != nil || object == nil {
		return
	}
	maps.Copy(object, fields)
	if body, err := json.Marshal(object); err == nil {
		b.body = body
	}
}
