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

// maxResponse is how many bytes of resources a response carries at most, unless one
// resource alone has more. gRPC's own client, which Envoy uses by google_grpc,
// refuses more than 4 MiB.
const maxResponse = 1 << 20

// A subscription of a stream to an entry.
type subscription struct {
	// version that the client has. Empty if it has none, or asked again.
	version string

	// due reports that the entry waits to be sent.
	due bool
}

// A stream of one Envoy. At rest it holds one goroutine, which waits for requests;
// a sender lives only while there is something to send, so a slow Envoy holds up
// nobody else, and gets the newest when it is ready. Streams are guarded by their
// server's lock, except for send, and node, which the receiver alone uses.
type stream struct {
	taker *taker

	send func(*discovery.DeltaDiscoveryResponse) error
	node string

	subscriptions map[*entry]subscription
	due           []*entry
	nonce         uint64

	// sending reports that a sender runs, and closed that none may be started.
	sending, closed bool
	senders         sync.WaitGroup
}

// mark notes that the entry is to be sent, unless the client has it.
func (st *stream) mark(e *entry) {
	sub, ok := st.subscriptions[e]
	if !ok || sub.due || e.resource == nil || sub.version == e.resource.GetVersion() {
		return
	}
	if !e.known && sub.version != "" {
		// The client knows more than we do.
		return
	}
	sub.due = true
	st.subscriptions[e] = sub
	st.due = append(st.due, e)
}

// next returns what to send now, or nil.
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
			// It was unsubscribed meanwhile.
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
