// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
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

// DeltaEndpoints serves an Envoy that asks for endpoints alone.
func (s *Server) DeltaEndpoints(stream endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return s.serve(stream)
}

// aggregated is the service that Envoys use for all names of an authority.
type aggregated struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	server *Server
}

// DeltaAggregatedResources serves an Envoy that asks for xdstp names. Endpoints are
// the only type there is.
func (a aggregated) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.server.serve(stream)
}

// serve answers until the client goes.
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
		switch err := s.handle(st, r); {
		case errors.Is(err, errLimited):
			// Envoy tries again, ever less often. What it has it keeps.
			s.opts.Log.Info("An Envoy asks for more than it may", "node", st.node, "address", st.taker.address, "error", err)
			return status.Error(codes.ResourceExhausted, err.Error())
		case err != nil:
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

// addressOf a client, without the port: what its connections have in common.
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

// first bytes of what a client says, for people. Of the rest nothing is kept.
func first(s string) string {
	const most = 256
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), most)], ""))
}

// handle a request: what is to be subscribed and what not, with or without an answer
// to the last response. A refused response is not repeated; the next change is sent
// all the same.
func (s *Server) handle(st *stream, r *discovery.DeltaDiscoveryRequest) error {
	if t := r.GetTypeUrl(); t != "" && t != TypeURL {
		return errors.Errorf("only endpoints are served here, not %q", t)
	}
	if id := r.GetNode().GetId(); id != "" {
		// Only the first request of a stream tells.
		st.node = first(id)
	}
	if d := r.GetErrorDetail(); d != nil {
		s.metrics.refused.Inc()
		s.opts.Log.Info("Envoy refuses endpoints", "node", st.node, "xds-clusters", s.some(st), "reason", first(d.GetMessage()))
	}
	if len(r.GetResourceNamesUnsubscribe()) > 0 {
		s.unsubscribe(st, r.GetResourceNamesUnsubscribe())
	}
	if len(r.GetResourceNamesSubscribe()) > 0 {
		return s.subscribe(st, r.GetResourceNamesSubscribe(), r.GetInitialResourceVersions())
	}
	return nil
}

// some of the lists that a stream asks for, for people: mostly there is but one.
func (s *Server) some(st *stream) string {
	const most = 3
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for e := range st.subscriptions {
		names = append(names, e.list)
	}
	slices.Sort(names)
	if n := len(names); n > most {
		names = append(names[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(names, ", ")
}
