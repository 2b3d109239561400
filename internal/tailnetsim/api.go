// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxBody bounds a request's body; the largest is a policy file.
const maxBody = 4 << 20

// A call is an authenticated API request. Handlers run with Server.mu held and
// only write to the reply's buffer.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	actor *token
	body  []byte
}

// route is one method of the API. The scope is what the OpenAPI document asks
// for; a GET is also allowed with scope:read. Without one the handler decides.
type route struct {
	method, path, scope string
	serve               func(*call)
}

func routes() []route {
	const tn = "/api/v2/tailnet/{tailnet}"
	const dev = "/api/v2/device/{device}"
	rs := []route{
		{"GET", tn + "/devices", "devices:core", (*call).listDevices},
		{"GET", dev, "devices:core", (*call).getDevice},
		{"DELETE", dev, "devices:core", (*call).deleteDevice},
		{"POST", dev + "/authorized", "devices:core", (*call).authorizeDevice},
		{"POST", dev + "/expire", "devices:core", (*call).expireDevice},
		{"POST", dev + "/name", "devices:core", (*call).nameDevice},
		{"POST", dev + "/tags", "devices:core", (*call).tagDevice},
		{"POST", dev + "/key", "devices:core", (*call).setDeviceKey},
		{"POST", dev + "/ip", "devices:core", (*call).setDeviceIP},
		{"GET", dev + "/routes", "devices:routes", (*call).getRoutes},
		{"POST", dev + "/routes", "devices:routes", (*call).setRoutes},
		{"GET", dev + "/attributes", "devices:posture_attributes", (*call).getAttributes},
		{"POST", dev + "/attributes/{key}", "devices:posture_attributes", (*call).setAttribute},
		{"DELETE", dev + "/attributes/{key}", "devices:posture_attributes", (*call).deleteAttribute},
		// What a key is decides which scope it takes.
		{"GET", tn + "/keys", "", (*call).listAnyKeys},
		{"POST", tn + "/keys", "", (*call).createAnyKey},
		{"GET", tn + "/keys/{key}", "", (*call).getAnyKey},
		{"PUT", tn + "/keys/{key}", "", (*call).setTrust},
		{"DELETE", tn + "/keys/{key}", "", (*call).deleteAnyKey},
		{"GET", tn + "/services/{service}/devices", "services", (*call).listHosts},
		{"GET", tn + "/services/{service}/device/{device}/approved", "services", (*call).getApproval},
		{"POST", tn + "/services/{service}/device/{device}/approved", "services", (*call).setApproval},
		{"GET", tn + "/acl", "policy_file", (*call).getPolicy},
		{"POST", tn + "/acl", "policy_file", (*call).setPolicy},
		{"POST", tn + "/acl/validate", "policy_file:read", (*call).validatePolicy},
		{"GET", tn + "/dns/nameservers", "dns", (*call).getNameservers},
		{"POST", tn + "/dns/nameservers", "dns", (*call).setNameservers},
		{"GET", tn + "/dns/preferences", "dns", (*call).getPreferences},
		{"POST", tn + "/dns/preferences", "dns", (*call).setPreferences},
		{"GET", tn + "/dns/searchpaths", "dns", (*call).getSearchPaths},
		{"POST", tn + "/dns/searchpaths", "dns", (*call).setSearchPaths},
		{"GET", tn + "/dns/split-dns", "dns", (*call).getSplitDNS},
		{"PUT", tn + "/dns/split-dns", "dns", (*call).setSplitDNS},
		{"PATCH", tn + "/dns/split-dns", "dns", (*call).patchSplitDNS},
		{"GET", tn + "/dns/configuration", "dns", (*call).getDNSConfiguration},
		{"POST", tn + "/dns/configuration", "dns", (*call).setDNSConfiguration},
		// Settings are authorised one by one.
		{"GET", tn + "/settings", "", (*call).getSettings},
		{"PATCH", tn + "/settings", "", (*call).patchSettings},
		{"GET", tn + "/contacts", "account_settings", (*call).getContacts},
		{"PATCH", tn + "/contacts/{type}", "account_settings", (*call).patchContact},
		{"GET", "/api/v2/organizations/{organization}/tailnets", "tailnets", (*call).listTailnets},
		{"GET", tn + "/users", "users", (*call).listUsers},
		{"GET", tn + "/webhooks", "webhooks", (*call).listWebhooks},
		{"POST", tn + "/webhooks", "webhooks", (*call).createWebhook},
		{"GET", "/api/v2/webhooks/{webhook}", "webhooks", (*call).getWebhook},
		{"PATCH", "/api/v2/webhooks/{webhook}", "webhooks", (*call).patchWebhook},
		{"DELETE", "/api/v2/webhooks/{webhook}", "webhooks", (*call).deleteWebhook},
		{"POST", "/api/v2/webhooks/{webhook}/rotate", "webhooks", (*call).rotateWebhook},
		{"POST", "/api/v2/webhooks/{webhook}/test", "webhooks", (*call).testWebhook},
		{"GET", tn + "/logging/{type}/stream", "log_streaming", (*call).getLogstream},
		{"PUT", tn + "/logging/{type}/stream", "log_streaming", (*call).setLogstream},
		{"DELETE", tn + "/logging/{type}/stream", "log_streaming", (*call).deleteLogstream},
		{"GET", tn + "/posture/integrations", "feature_settings", (*call).listPostures},
		{"POST", tn + "/posture/integrations", "feature_settings", (*call).createPosture},
		{"GET", "/api/v2/posture/integrations/{integration}", "feature_settings", (*call).getPosture},
		{"PATCH", "/api/v2/posture/integrations/{integration}", "feature_settings", (*call).patchPosture},
		{"DELETE", "/api/v2/posture/integrations/{integration}", "feature_settings", (*call).deletePosture},
	}
	// The Go clients say vip-services, the OpenAPI document says services.
	for _, p := range []string{tn + "/vip-services", tn + "/services"} {
		rs = append(rs,
			route{"GET", p, "services", (*call).listServices},
			route{"GET", p + "/{service}", "services", (*call).getService},
			route{"PUT", p + "/{service}", "services", (*call).putService},
			route{"DELETE", p + "/{service}", "services", (*call).deleteService},
		)
	}
	return rs
}

func (s *Server) apiMux() *http.ServeMux {
	m := http.NewServeMux()
	for _, rt := range routes() {
		name := rt.method + " " + rt.path
		m.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) {
			if !s.bystander(r) {
				s.calls.add(name)
			}
			s.serveCall(w, r, rt)
		})
	}
	m.HandleFunc("POST /api/v2/oauth/token", func(w http.ResponseWriter, r *http.Request) {
		s.calls.add("POST /api/v2/oauth/token")
		s.serveToken(w, r)
	})
	m.HandleFunc("POST /api/v2/oauth/token-exchange", func(w http.ResponseWriter, r *http.Request) {
		s.calls.add("POST /api/v2/oauth/token-exchange")
		s.serveTokenExchange(w, r)
	})
	if s.opts.Admin {
		s.adminRoutes(m)
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.calls.add(r.Method + " (unknown)")
		s.log.Info("Got an unknown request", "method", r.Method, "path", r.URL.Path)
		writeError(w, http.StatusNotFound, "404 page not found")
	})
	return m
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, rt route) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusBadRequest, "cannot read request body")
		return
	}
	b := &reply{header: w.Header(), status: http.StatusOK}
	func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := &call{s: s, w: b, r: r, body: body}
		if !c.authenticate(rt) {
			return
		}
		rt.serve(c)
	}()
	s.log.Debug("Served", "method", r.Method, "path", r.URL.Path, "status", b.status)
	b.flush(w)
}

// authenticate checks token, scope and tailnet, and answers if one is wrong.
func (c *call) authenticate(rt route) bool {
	c.actor = c.s.actorLocked(c.r)
	if c.actor == nil {
		c.fail(http.StatusUnauthorized, "API token invalid")
		return false
	}
	if rt.scope != "" && !c.actor.allows(rt.scope, rt.method == http.MethodGet) {
		c.fail(http.StatusForbidden, "calling actor does not have enough permissions to perform this function: scope "+rt.scope+" is required")
		return false
	}
	if t := c.r.PathValue("tailnet"); t != "" && t != "-" && t != c.s.opts.Tailnet && t != c.s.opts.Domain {
		c.fail(http.StatusNotFound, "tailnet not found")
		return false
	}
	return true
}

// decode reads the body into v, or answers 400.
func (c *call) decode(v any) bool {
	if err := json.Unmarshal(c.body, v); err != nil {
		c.fail(http.StatusBadRequest, "invalid JSON in request body: "+err.Error())
		return false
	}
	return true
}

func (c *call) fail(status int, msg string) { writeError(c.w, status, msg) }

func (c *call) json(v any) { writeJSON(c.w, http.StatusOK, v) }

func (c *call) ok() { c.json(struct{}{}) }

// ownsTags says whether the actor may give out all tags, and answers if not.
func (c *call) ownsTags(tags []string) bool {
	for _, t := range tags {
		if c.actor.AnyTag {
			if _, ok := c.s.policy.TagOwners[t]; ok {
				continue
			}
		}
		if !c.s.policy.owns(c.actor.Tags, t) {
			c.fail(http.StatusBadRequest, "requested tags ["+t+"] are invalid or not permitted")
			return false
		}
	}
	return true
}

// reply buffers an answer, so that no handler writes to the network.
type reply struct {
	header http.Header
	status int
	body   []byte
}

func (b *reply) Header() http.Header { return b.header }

func (b *reply) WriteHeader(status int) { b.status = status }

func (b *reply) Write(p []byte) (int, error) {
	b.body = append(b.body, p...)
	return len(p), nil
}

func (b *reply) flush(w http.ResponseWriter) {
	w.WriteHeader(b.status)
	// The client may be gone: nobody is left to be told.
	_, _ = w.Write(b.body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"message":"cannot encode reply"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone: nobody is left to be told.
	_, _ = w.Write(b)
}

func writeError(w http.ResponseWriter, status int, msg string) {
	writeJSON(w, status, map[string]string{"message": msg})
}

func (s *Server) now() time.Time { return time.Now() }

// nonNil makes an empty list of no list, as the API has it.
func nonNil(in []string) []string {
	if in == nil {
		return []string{}
	}
	return slices.Clone(in)
}
