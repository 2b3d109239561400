// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An oldReply is a reply of the API that may be given again.
type oldReply struct {
	reply reply
	at    time.Time
}

// lags reports whether replies of a route may be old ones.
func (rt route) lags() bool {
	return rt.method == http.MethodGet && (strings.Contains(rt.path, "/device") || strings.Contains(rt.path, "services"))
}

// repeat gives the reply again that a call got a short time ago, if Switches.Lag says so.
func (c *call) repeat(rt route, b *reply) bool {
	lag := c.s.switches.Lag.API.Duration
	old := c.s.replies[c.r.URL.RequestURI()]
	if lag <= 0 || old == nil || !rt.lags() || c.s.now().Sub(old.at) >= lag {
		return false
	}
	b.status, b.body = old.reply.status, old.reply.body
	maps.Copy(b.header, old.reply.header)
	return true
}

// remember keeps a reply for repeat.
func (c *call) remember(rt route, b *reply) {
	if c.s.switches.Lag.API.Duration <= 0 {
		clear(c.s.replies)
		return
	}
	if rt.lags() {
		c.s.replies[c.r.URL.RequestURI()] = &oldReply{at: c.s.now(), reply: reply{header: b.header.Clone(), status: b.status, body: slices.Clone(b.body)}}
	}
}
