// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"

	pb "github.com/envoyproxy/gateway/proto/extension"
)

// The extension changes nothing in these hooks. They return the object of the request to any
// subscriber: an empty answer would remove the object for the next extension in the chain.

// PostRouteModify returns the route unchanged.
func (s *Server) PostRouteModify(_ context.Context, req *pb.PostRouteModifyRequest) (*pb.PostRouteModifyResponse, error) {
	return &pb.PostRouteModifyResponse{Route: req.GetRoute()}, nil
}

// PostVirtualHostModify returns the virtual host unchanged.
func (s *Server) PostVirtualHostModify(_ context.Context, req *pb.PostVirtualHostModifyRequest) (*pb.PostVirtualHostModifyResponse, error) {
	return &pb.PostVirtualHostModifyResponse{VirtualHost: req.GetVirtualHost()}, nil
}

// PostHTTPListenerModify returns the listener unchanged.
func (s *Server) PostHTTPListenerModify(_ context.Context, req *pb.PostHTTPListenerModifyRequest) (*pb.PostHTTPListenerModifyResponse, error) {
	return &pb.PostHTTPListenerModifyResponse{Listener: req.GetListener()}, nil
}

// PostClusterModify returns the cluster unchanged.
func (s *Server) PostClusterModify(_ context.Context, req *pb.PostClusterModifyRequest) (*pb.PostClusterModifyResponse, error) {
	return &pb.PostClusterModifyResponse{Cluster: req.GetCluster()}, nil
}

// PostEndpointsModify returns the endpoints unchanged.
func (s *Server) PostEndpointsModify(_ context.Context, req *pb.PostEndpointsModifyRequest) (*pb.PostEndpointsModifyResponse, error) {
	return &pb.PostEndpointsModifyResponse{LoadAssignment: req.GetLoadAssignment()}, nil
}
