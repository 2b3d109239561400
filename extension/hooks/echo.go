// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"

	pb "github.com/envoyproxy/gateway/proto/extension"
)

// The hooks that nothing of ours needs echo what they get, for whoever subscribes to
// them: an empty answer would take the object from the next extension in the chain.

// PostRouteModify echoes.
func (s *Server) PostRouteModify(_ context.Context, req *pb.PostRouteModifyRequest) (*pb.PostRouteModifyResponse, error) {
	return &pb.PostRouteModifyResponse{Route: req.GetRoute()}, nil
}

// PostVirtualHostModify echoes.
func (s *Server) PostVirtualHostModify(_ context.Context, req *pb.PostVirtualHostModifyRequest) (*pb.PostVirtualHostModifyResponse, error) {
	return &pb.PostVirtualHostModifyResponse{VirtualHost: req.GetVirtualHost()}, nil
}

// PostHTTPListenerModify echoes.
func (s *Server) PostHTTPListenerModify(_ context.Context, req *pb.PostHTTPListenerModifyRequest) (*pb.PostHTTPListenerModifyResponse, error) {
	return &pb.PostHTTPListenerModifyResponse{Listener: req.GetListener()}, nil
}

// PostClusterModify echoes.
func (s *Server) PostClusterModify(_ context.Context, req *pb.PostClusterModifyRequest) (*pb.PostClusterModifyResponse, error) {
	return &pb.PostClusterModifyResponse{Cluster: req.GetCluster()}, nil
}

// PostEndpointsModify echoes.
func (s *Server) PostEndpointsModify(_ context.Context, req *pb.PostEndpointsModifyRequest) (*pb.PostEndpointsModifyResponse, error) {
	return &pb.PostEndpointsModifyResponse{LoadAssignment: req.GetLoadAssignment()}, nil
}
