// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxBody bounds a request's body; the largest is a policy file.
const maxBody = 4 << 20

// A call is an authenticated API request. Handlers are functions of a call. They run with
// Server.mu held and only write to the reply's buffer.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	actor *token
	body  []byte
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
		if !c.authenticate(rt) || c.refusesForeign() {
			return
		}
		if !c.repeat(rt, b) {
			rt.serve(c)
			c.keepForeign(b)
			c.s.switches.Replies.change(b, rt)
			c.remember(rt, b)
		}
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
	if !c.known() {
		return false
	}
	if !c.actor.may(rt) {
		c.forbid()
		return false
	}
	if t := c.r.PathValue("tailnet"); t != "" && t != "-" && t != c.s.opts.Tailnet && t != c.s.opts.Domain {
		c.fail(http.StatusNotFound, "tailnet not found")
		return false
	}
	return c.planHas(rt.feature)
}

// planHas reports whether the plan has a feature, and answers if not. The words are
// measured (abn/ansible-tailscale-admin, tests/live/test_logging_module_live.py).
func (c *call) planHas(f Feature) bool {
	status, lacks := c.s.switches.Plan[f]
	if f == "" || !lacks {
		return true
	}
	c.fail(cmp.Or(status, http.StatusForbidden), "feature not available on current billing plan")
	return false
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

// ok answers as the API does to a call that has nothing to say: with null
// (abn/ansible-tailscale-admin, the doubles of its unit tests).
func (c *call) ok() { c.json(nil) }

// ownsTags reports whether the actor may give out all tags, and answers if not.
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
	// The client may be gone, and there is no one else to report to.
	_, _ = w.Write(b.body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"message":"cannot encode reply"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone, and there is no one else to report to.
	_, _ = w.Write(b)
}

func writeError(w http.ResponseWriter, status int, msg string) {
	writeJSON(w, status, map[string]string{"message": msg})
}

func (s *Server) now() time.Time { return time.Now().Add(time.Duration(s.clockOffset.Load())) }

// nonNil makes an empty list of no list, as the API has it.
func nonNil(values []string) []string {
	if values == nil {
		return []string{}
	}
	return slices.Clone(values)
}
