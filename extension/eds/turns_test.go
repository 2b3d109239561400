// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestManyTunedLists has one tenant change all of its many lists, which take long to build. Meanwhile,
// neither a list of another tenant that changes, nor a new subscription, nor the next snapshot may wait
// for them.
func TestManyTunedLists(t *testing.T) {
	const many, endpoints = 400, 500
	hostile := func(generation int) []*ir.Target {
		var out []*ir.Target
		for i := range many {
			tgt := target("web-"+strconv.Itoa(i), "")
			tgt.Key.Namespace = "hostile"
			tgt.Localities = nil
			for z := range 8 {
				l := ir.Locality{Name: "l", Zone: strconv.Itoa(z), Weight: 1}
				for e := range endpoints / 8 {
					l.Endpoints = append(l.Endpoints, ir.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", generation, z, e+1), Port: 80})
				}
				tgt.Localities = append(tgt.Localities, l)
			}
			out = append(out, tgt)
		}
		return out
	}
	tuning := ir.Tuning{PreferLocal: true, HealthPort: 9090}
	for name, act := range map[string]func(h *turns){
		"Change":      func(h *turns) { h.change("10.0.0.2") },
		"Subscribe":   func(h *turns) { h.subscribe("other") },
		"NewSnapshot": func(h *turns) { h.newSnapshot("10.0.0.3") },
	} {
		t.Run(name, func(t *testing.T) {
			h := &turns{t: t, hostile: hostile}
			h.store(1, "10.0.0.1")
			h.server = NewServer(h.snapshot.Load, Options{})
			h.answers = make(chan string, 2*many)
			var names []string
			for _, tgt := range hostile(1) {
				names = append(names, tuning.Name(tgt.Key.ClusterName()))
			}
			h.open(names...)
			h.names = names
			h.subscribe("web")
			act(h)
		})
	}
}

// turns holds a server with the lists of a hostile tenant and of another one.
type turns struct {
	t        *testing.T
	server   *Server
	snapshot atomic.Pointer[ir.Snapshot]
	hostile  func(generation int) []*ir.Target
	names    []string

	// answers are the names of the lists of the other tenant that are sent.
	answers chan string
}

// store replaces the snapshot.
func (h *turns) store(generation int, address string) {
	h.snapshot.Store(ir.NewSnapshot(ir.Contents{Targets: append(h.hostile(generation), target("web", address), target("other", address))}))
}

// open subscribes a new stream to lists.
func (h *turns) open(names ...string) {
	st, err := h.server.open("envoy", func(r *discovery.DeltaDiscoveryResponse) error {
		for _, resource := range r.GetResources() {
			if resource.GetName() == key("web").ClusterName() || resource.GetName() == key("other").ClusterName() {
				h.answers <- resource.GetName()
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.server.subscribe(st, names, nil); err != nil {
		h.t.Fatal(err)
	}
}

// subscribe subscribes to a list of the other tenant, while the lists of the hostile tenant change
// unless it is the first.
func (h *turns) subscribe(name string) {
	if name == "web" {
		h.open(key(name).ClusterName())
		<-h.answers
		return
	}
	h.store(2, "10.0.0.1")
	h.refreshWhile(func() { h.open(key(name).ClusterName()) })
}

// change changes the list of the other tenant in the snapshot that changes those of the hostile one.
func (h *turns) change(address string) {
	h.store(2, address)
	h.refreshWhile(func() {})
}

// newSnapshot changes the list of the other tenant in the next snapshot.
func (h *turns) newSnapshot(address string) {
	h.store(2, "10.0.0.1")
	next := ir.NewSnapshot(ir.Contents{Targets: append(h.hostile(2), target("web", address), target("other", address))})
	h.refreshWhile(func() {
		h.snapshot.Store(next)
		h.server.ChangedAll()
	})
}

// refreshWhile does something once the hostile tenant's lists are being updated, and checks that the
// other tenant has an answer before half of them are.
func (h *turns) refreshWhile(fn func()) {
	h.t.Helper()
	previous := h.versions()
	acted, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		h.server.ChangedAll()
		h.server.refresh()
		// A snapshot may be announced meanwhile.
		<-acted
		h.server.ChangedAll()
		h.server.refresh()
	}()
	for h.updated(previous) == 0 {
	}
	fn()
	close(acted)
	<-h.answers
	if n := h.updated(previous); n > len(previous)/2 {
		h.t.Errorf("the other tenant waits until %d of %d lists of the hostile one are updated", n, len(previous))
	}
	<-done
	if n := h.updated(previous); n != len(previous) {
		h.t.Errorf("%d of %d lists are updated", n, len(previous))
	}
}

// versions returns the versions of the hostile tenant's lists.
func (h *turns) versions() map[string]string {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	out := map[string]string{}
	for _, n := range h.names {
		out[n] = h.server.entries[n].resource.GetVersion()
	}
	return out
}

// updated returns the number of lists with other versions.
func (h *turns) updated(previous map[string]string) int {
	n := 0
	for name, v := range h.versions() {
		if previous[name] != v {
			n++
		}
	}
	return n
}
