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

// maxRejected is the number of bytes of names that wait to be answered as removed.
const maxRejected = 64 << 10

// A subscription of a stream to an entry.
type subscription struct {
	// version that the client has. Empty if it has none, or subscribed again.
	version string

	// due reports that the entry waits to be sent.
	due bool

	// nonce of the last response with the entry, or zero, and whether it had other entries.
	nonce    uint64
	together bool

	// alone reports that the client refused a response with this entry. Until it accepts the entry,
	// no other entry is in the same response.
	alone bool
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

	// alone is the number of subscriptions whose entries are sent alone.
	alone int

	// rejected are names to answer as removed, of rejectedSize bytes together.
	rejected     []string
	rejectedSize int

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
	if !e.listed && sub.version != "" {
		// The client has a list that this replica does not know.
		return
	}
	sub.due = true
	st.subscriptions[e] = sub
	st.due = append(st.due, e)
}

// reject marks a name to be answered as removed. Names that exceed the limit get no answer, after
// which Envoy waits for its initial_fetch_timeout: only a client that does not read has so many.
func (st *stream) reject(name string) {
	if st.rejectedSize+len(name) > maxRejected {
		return
	}
	st.rejected = append(st.rejected, name)
	st.rejectedSize += len(name)
}

// next returns the next response, or nil.
func (st *stream) next() *discovery.DeltaDiscoveryResponse {
	if st.closed {
		st.due, st.rejected = nil, nil
		return nil
	}
	if len(st.rejected) > 0 {
		st.nonce++
		r := &discovery.DeltaDiscoveryResponse{TypeUrl: TypeURL, Nonce: strconv.FormatUint(st.nonce, 10), RemovedResources: st.rejected}
		st.rejected, st.rejectedSize = nil, 0
		return r
	}
	if len(st.due) == 0 {
		st.due = nil
		return nil
	}
	// Entries come from a map.
	slices.SortFunc(st.due, func(a, b *entry) int { return cmp.Compare(a.name, b.name) })

	var resources []*discovery.Resource
	var entries []*entry
	size := 0
	for len(st.due) > 0 {
		e := st.due[0]
		sub := st.subscriptions[e]
		if n := len(e.resource.GetResource().GetValue()); len(resources) > 0 && (sub.due && sub.alone || size+n > maxResponse) {
			break
		}
		st.due = st.due[1:]
		if !sub.due {
			// The stream has unsubscribed meanwhile.
			continue
		}
		sub.version, sub.due, sub.nonce = e.resource.GetVersion(), false, st.nonce+1
		st.subscriptions[e] = sub
		resources, entries = append(resources, e.resource), append(entries, e)
		size += len(e.resource.GetResource().GetValue())
		if sub.alone {
			break
		}
	}
	if len(resources) == 0 {
		st.due = nil
		return nil
	}
	for _, e := range entries {
		sub := st.subscriptions[e]
		sub.together = len(entries) > 1
		st.subscriptions[e] = sub
	}
	st.nonce++
	return &discovery.DeltaDiscoveryResponse{TypeUrl: TypeURL, Nonce: strconv.FormatUint(st.nonce, 10), Resources: resources}
}

// accept records that the client accepted a response.
func (st *stream) accept(nonce uint64) {
	if st.alone == 0 {
		return
	}
	for e, sub := range st.subscriptions {
		if sub.alone && sub.nonce == nonce {
			sub.alone = false
			st.subscriptions[e] = sub
			st.alone--
		}
	}
}

// refuse records that the client refused a response, and returns its entries. Envoy refuses a
// response as a whole, and its lists belong to several tenants, so they are sent again one by one.
// A list that was refused alone is not sent again before its next change.
func (st *stream) refuse(nonce uint64) []*entry {
	var out []*entry
	for e, sub := range st.subscriptions {
		if sub.nonce != nonce || nonce == 0 {
			continue
		}
		out = append(out, e)
		if !sub.alone {
			sub.alone = true
			st.alone++
		}
		if sub.together {
			sub.version = ""
		}
		st.subscriptions[e] = sub
		st.mark(e)
	}
	return out
}
