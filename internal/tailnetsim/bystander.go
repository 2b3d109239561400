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
