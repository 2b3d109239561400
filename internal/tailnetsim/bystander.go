// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import "net/http"

// HeaderBystander marks API requests of a test's own. They are neither spoilt nor
// counted, so that looking at a tailnet disturbs no experiment. It works where
// Options.Admin is set.
const HeaderBystander = "X-Tailnetsim-Bystander"

func (s *Server) bystander(r *http.Request) bool {
	return s.opts.Admin && r.Header.Get(HeaderBystander) != ""
}

// Scopes maps each call of the API, as Calls counts it, to the OAuth scope that
// it needs.
func Scopes() map[string]string {
	out := map[string]string{}
	for _, rt := range routes() {
		out[rt.method+" "+rt.path] = rt.scope
	}
	return out
}
