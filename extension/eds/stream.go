// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// maxResponse is the number of bytes of resources in a response, unless one resource alone has
// more. gRPC's own client, which Envoy uses by google_grpc, refuses more than 4 MiB.
const maxResponse = 1 << 20

// A subscription of a stream to an entry.
type subscription struct {
	// version that the client has. Empty if it has none, or subscribed again.
	version string

	// due reports that the entry waits to be sent.
	due bool
}

// A stream of one Envoy. An idle stream has one goroutine, which waits for requests; a sender runs
// only while entries are due. A slow Envoy therefore delays no other, and gets the newest list when
// it is ready. The server's lock guards streams, except for send, and for node, which only the
// receiver uses.
type stream struct {
	account *account

	send func(*discovery.DeltaDiscoveryResponse) error
	node string

	subscriptions map[*entry]subscription
	due           []*entry
	nonce         uint64

	// sending reports that a sender runs, and closed that none may start.
	sending, closed bool
	senders         sync.WaitGroup
}

// mark marks the entry as due, unless the client has it.
func (st *stream) mark(e *entry) {
	sub, ok := st.subscriptions[e]
	if !ok || sub.due || e.resource == nil || sub.version == e.resource.GetVersion() {
		return
	}
	if !e.known && sub.version != "" {
		// The client has a list that this replica does not know.
		return
	}
	sub.due = true
	st.subscriptions[e] = sub
	st.due = append(st.due, e)
}

// next returns the next response, or nil.
func (st *stream) next() *discovery.DeltaDiscoveryResponse {
	if st.closed || len(st.due) == 0 {
		st.due = nil
		return nil
	}
	// Entries come from a map.
	slices.SortFunc(st.due, func(a, b *entry) int { return cmp.Compare(a.name, b.name) })

	var resources []*discovery.Resource
	size := 0
	for len(st.due) > 0 {
		e := st.due[0]
		if n := len(e.resource.GetResource().GetValue()); len(resources) > 0 && size+n > maxResponse {
			break
		}
		st.due = st.due[1:]
		if !st.subscriptions[e].due {
			// The stream has unsubscribed meanwhile.
			continue
		}
		st.subscriptions[e] = subscription{version: e.resource.GetVersion()}
		resources = append(resources, e.resource)
		size += len(e.resource.GetResource().GetValue())
	}
	if len(resources) == 0 {
		st.due = nil
		return nil
	}
	st.nonce++
	return &discovery.DeltaDiscoveryResponse{TypeUrl: TypeURL, Nonce: strconv.FormatUint(st.nonce, 10), Resources: resources}
}
