// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"strings"
)

// Replies are bodies of replies to successful writes. The OpenAPI document promises a body for
// /services alone, and the official client reads none of a PUT (client v2.12.0, services.go,
// CreateOrUpdate), so a reply may be anything.
type Replies struct {
	// PutService replaces the body of a successful PUT of a service. "empty" is an empty
	// body.
	PutService string `json:"putService,omitempty"`
}

// emptyBody is the value of a reply without a body.
const emptyBody = "empty"

// change replaces the body of a reply.
func (r Replies) change(b *reply, rt route) {
	if r.PutService == "" || b.status != http.StatusOK || rt.method != http.MethodPut || !strings.HasSuffix(rt.path, "services/{service}") {
		return
	}
	b.body = []byte(r.PutService)
	if r.PutService == emptyBody {
		b.body = nil
	}
}

// A Removal is what removes a domain from split DNS in a PATCH.
type Removal string

// Removals.
const (
	RemovalNull  Removal = "null"
	RemovalEmpty Removal = "empty"
)
