// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A deltaStream is the same for both services.
type deltaStream = grpc.BidiStreamingServer[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]

// DeltaEndpoints serves an Envoy that subscribes to endpoints only.
func (s *Server) DeltaEndpoints(stream endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return s.serve(stream)
}

// aggregated is the service that Envoys use for all names of an authority.
type aggregated struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	server *Server
}

// DeltaAggregatedResources serves an Envoy that subscribes to xdstp names. Endpoints are the only
// type.
func (a aggregated) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.server.serve(stream)
}

// serve answers until the client closes the stream.
func (s *Server) serve(stream deltaStream) error {
	st, err := s.open(addressOf(stream.Context()), stream.Send)
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	defer s.close(st)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.handle(st, r); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

// addressOf returns the client's address without the port, which all of its connections share.
func addressOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return host
}

// first returns the first bytes of a client's text, for logs. The server does not keep the rest.
func first(s string) string {
	const most = 256
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), most)], ""))
}

// handle handles a request, which subscribes, unsubscribes, or answers a response.
func (s *Server) handle(st *stream, r *discovery.DeltaDiscoveryRequest) error {
	if t := r.GetTypeUrl(); t != "" && t != TypeURL {
		return errors.Errorf("only endpoints are served, not %q", t)
	}
	if id := r.GetNode().GetId(); id != "" {
		// Only the first request of a stream names the node.
		st.node = first(id)
	}
	s.settle(st, r)
	if len(r.GetResourceNamesUnsubscribe()) > 0 {
		s.unsubscribe(st, r.GetResourceNamesUnsubscribe())
	}
	if err := s.subscribe(st, r.GetResourceNamesSubscribe(), r.GetInitialResourceVersions()); err != nil {
		s.opts.Log.Info("Cannot serve endpoints to an Envoy", "node", st.node, "address", st.account.address, "error", first(err.Error()))
	}
	return nil
}

// settle records the client's answer to a response, if the request is one.
func (s *Server) settle(st *stream, r *discovery.DeltaDiscoveryRequest) {
	nonce, err := strconv.ParseUint(r.GetResponseNonce(), 10, 64)
	if err != nil {
		// The first request of a stream answers nothing.
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := r.GetErrorDetail()
	if d == nil {
		st.accept(nonce)
		return
	}
	s.metrics.refused.Inc()
	s.opts.Log.Info("Envoy refuses endpoints", "node", st.node, "xds-clusters", some(st.refuse(nonce)), "reason", first(d.GetMessage()))
	s.start(st)
}

// some returns some of the lists for a log.
func some(entries []*entry) string {
	const most = 3
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.list)
	}
	slices.Sort(names)
	if n := len(names); n > most {
		names = append(names[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(names, ", ")
}
