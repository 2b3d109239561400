//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
)

// A subscriber has endpoint lists from a replica, on one stream with an Envoy's certificate.
type subscriber struct {
	mu      sync.Mutex
	lists   map[string]*endpointv3.ClusterLoadAssignment
	changed chan struct{}
	err     error
}

// subscribe subscribes to endpoint lists of the replica that serves at an address.
func (w *environment) subscribe(t *testing.T, address string, names ...string) *subscriber {
	t.Helper()
	all := w.made(t, "-certificates")
	pair, err := tls.X509KeyPair(all.Data["envoy.crt"], all.Data["envoy.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.made(t, "-client").Data["ca.crt"])
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: edsName, Certificates: []tls.Certificate{pair}})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.Dial(ctx, "tcp", address) }))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := endpointservice.NewEndpointDiscoveryServiceClient(c).DeltaEndpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "subscriber"}, TypeUrl: eds.TypeURL, ResourceNamesSubscribe: names}); err != nil {
		t.Fatal(err)
	}
	s := &subscriber{lists: map[string]*endpointv3.ClusterLoadAssignment{}, changed: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if err := s.receive(stream); err != nil {
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
				s.notify()
				return
			}
		}
	}()
	t.Cleanup(func() {
		check(t, c.Close())
		<-ended
	})
	return s
}

// receive receives one response and acknowledges it.
func (s *subscriber) receive(stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]) error {
	rsp, err := stream.Recv()
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, r := range rsp.GetResources() {
		list := &endpointv3.ClusterLoadAssignment{}
		if err := r.GetResource().UnmarshalTo(list); err != nil {
			s.mu.Unlock()
			return err
		}
		s.lists[r.GetName()] = list
	}
	for _, n := range rsp.GetRemovedResources() {
		delete(s.lists, n)
	}
	s.mu.Unlock()
	s.notify()
	return stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: eds.TypeURL, ResponseNonce: rsp.GetNonce()})
}

func (s *subscriber) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits until the lists pass a check.
func (s *subscriber) until(ctx context.Context, ok func(lists map[string]*endpointv3.ClusterLoadAssignment) bool) error {
	for {
		s.mu.Lock()
		done, err := ok(s.lists), s.err
		s.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
		}
	}
}

// text returns a list as JSON.
func (s *subscriber) text(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := protojson.Marshal(s.lists[name])
	// The encoder adds random spaces.
	return strings.ReplaceAll(string(b), " ", ""), errors.Wrapf(err, "cannot encode %q", name)
}

// addressesOf returns the sorted addresses of a list.
func addressesOf(list *endpointv3.ClusterLoadAssignment) []string {
	var out []string
	for _, l := range list.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			out = append(out, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(out)
	return out
}
