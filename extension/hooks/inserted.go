// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// measured is the number of times by which inserted routes may exceed the index's estimate. The index
// does not know what Envoy Gateway attaches to routes, which inserted ones keep, nor the listeners of
// a ListenerSet.
const measured = 2

// inserted are the bytes of the routes that policies insert into a message.
type inserted struct {
	total      int
	namespaces map[string]int
}

// admits reports whether as many bytes more may be inserted before the routes of a namespace.
func (in *inserted) admits(namespace string, size int) bool {
	return in.namespaces[namespace]+size <= measured*limits.NamespaceInsertions && in.total+size <= measured*limits.GatewayInsertions
}

// add counts inserted routes.
func (in *inserted) add(namespace string, size int) {
	in.namespaces[namespace] += size
	in.total += size
}

// refuse returns a route that denies all requests of a route whose policies cannot be applied.
func refuse(r *routev3.Route) *routev3.Route {
	return &routev3.Route{
		Name:   policyPrefix + "refused/" + r.GetName(),
		Match:  proto.CloneOf(r.GetMatch()),
		Action: xds.Answer(http.StatusForbidden),
	}
}
