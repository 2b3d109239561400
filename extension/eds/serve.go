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
		switch err := s.handle(st, r); {
		case errors.Is(err, errLimited):
			// Envoy tries again, with growing pauses, and keeps its endpoints.
			s.opts.Log.Info("An Envoy exceeds a limit", "node", st.node, "address", st.account.address, "error", err)
			return status.Error(codes.ResourceExhausted, err.Error())
		case err != nil:
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

// handle handles a request, which subscribes, unsubscribes, or answers the last response. A refused
// response is not sent again; the next change is.
func (s *Server) handle(st *stream, r *discovery.DeltaDiscoveryRequest) error {
	if t := r.GetTypeUrl(); t != "" && t != TypeURL {
		return errors.Errorf("only endpoints are served, not %q", t)
	}
	if id := r.GetNode().GetId(); id != "" {
		// Only the first request of a stream names the node.
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

// some returns some of a stream's lists for a log: mostly there is only one.
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
