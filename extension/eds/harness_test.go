// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A harness is a server with a real client, in a synctest bubble.
type harness struct {
	t        *testing.T
	server   *Server
	conn     *grpc.ClientConn
	snapshot atomic.Pointer[ir.Snapshot]
}

// run calls f with a server that serves the contents.
func run(t *testing.T, c ir.Contents, f func(*harness)) {
	t.Helper()
	runWithin(t, Limits{}, c, f)
}

// runWithin calls f with a server that has limits.
func runWithin(t *testing.T, l Limits, c ir.Contents, f func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t}
		h.snapshot.Store(ir.NewSnapshot(c))
		h.server = NewServer(h.snapshot.Load, Options{Limits: l})

		l := bufconn.Listen(1 << 16)
		srv := grpc.NewServer()
		h.server.Register(srv)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- srv.Serve(l) }()
		go func() { done <- h.server.Run(ctx) }()

		conn, err := grpc.NewClient("passthrough:///eds", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		h.conn = conn

		f(h)

		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		if n := len(h.server.entries); n != 0 {
			t.Errorf("%d lists remain after the last stream", n)
		}
		if n := len(h.server.byList) + len(h.server.tuned); n != 0 {
			t.Errorf("%d groups of lists and tuned lists remain after the last stream", n)
		}
		if u := h.server.usage; len(u.accounts) != 0 || u.all != (account{}) {
			t.Errorf("bytes remain charged after the last stream: %+v, %+v", u.all, u.accounts)
		}
	})
}

// change replaces the snapshot.
func (h *harness) change(c ir.Contents) {
	h.snapshot.Store(ir.NewSnapshot(c))
	h.server.ChangedAll()
}

// doubtful returns the bytes that all clients are charged.
func (h *harness) doubtful() int {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.server.usage.all.doubtful
}

// A client is one stream.
type client struct {
	t         *testing.T
	stream    grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
	responses chan *discovery.DeltaDiscoveryResponse
	failed    chan error

	// removed are the names that received has found to be answered as removed.
	removed []string
}

func (h *harness) endpoints() *client {
	s, err := endpointservice.NewEndpointDiscoveryServiceClient(h.conn).DeltaEndpoints(h.t.Context())
	return h.client(s, err)
}

func (h *harness) aggregated() *client {
	s, err := discovery.NewAggregatedDiscoveryServiceClient(h.conn).DeltaAggregatedResources(h.t.Context())
	return h.client(s, err)
}

func (h *harness) client(s grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse], err error) *client {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	c := &client{t: h.t, stream: s, responses: make(chan *discovery.DeltaDiscoveryResponse, 10000), failed: make(chan error, 1)}
	go func() {
		for {
			r, err := s.Recv()
			if err != nil {
				c.failed <- err
				return
			}
			c.responses <- r
		}
	}()
	return c
}

func (c *client) request(r *discovery.DeltaDiscoveryRequest) {
	c.t.Helper()
	if err := c.stream.Send(r); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) subscribe(names ...string) {
	c.t.Helper()
	c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResourceNamesSubscribe: names})
}

// received returns the acknowledged resources by name, once the server is idle.
func (c *client) received() map[string]*discovery.Resource {
	c.t.Helper()
	synctest.Wait()
	out := map[string]*discovery.Resource{}
	for {
		select {
		case r := <-c.responses:
			for _, res := range r.GetResources() {
				out[res.GetName()] = res
			}
			c.removed = append(c.removed, r.GetRemovedResources()...)
			c.request(&discovery.DeltaDiscoveryRequest{TypeUrl: TypeURL, ResponseNonce: r.GetNonce()})
		default:
			return out
		}
	}
}

// addresses returns the addresses of all received endpoints, by name of the list.
func (c *client) addresses() map[string][]string {
	c.t.Helper()
	out := map[string][]string{}
	for name, r := range c.received() {
		a := &endpointv3.ClusterLoadAssignment{}
		if err := r.GetResource().UnmarshalTo(a); err != nil {
			c.t.Fatal(err)
		}
		if a.GetClusterName() != name {
			c.t.Errorf("list %q is called %q inside", name, a.GetClusterName())
		}
		addresses := []string{}
		for _, l := range a.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				a := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
				if port := e.GetEndpoint().GetHealthCheckConfig().GetPortValue(); port != 0 {
					a = fmt.Sprintf("%s checked at %d", a, port)
				}
				addresses = append(addresses, a)
			}
		}
		out[name] = addresses
	}
	return out
}

func key(name string) ir.TargetKey {
	return ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: name, Port: 80, Protocol: ir.ProtocolHTTP}
}

func localities(addresses ...string) []ir.Locality {
	l := ir.Locality{Name: "local", Weight: 1}
	for _, a := range addresses {
		l.Endpoints = append(l.Endpoints, ir.Endpoint{Address: a, Port: 8080})
	}
	return []ir.Locality{l}
}

func target(name string, addresses ...string) *ir.Target {
	return &ir.Target{Key: key(name), Localities: localities(addresses...)}
}

func targets(ts ...*ir.Target) ir.Contents { return ir.Contents{Targets: ts} }

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func ours(name string, weight uint32) ir.BackendRef {
	return ir.BackendRef{Kind: ir.BackendServices, NamespacedName: named(name), Port: 80, Weight: weight}
}
