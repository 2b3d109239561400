// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

const (
	// peerTimeout is the time without an acknowledgement after which a connection counts as
	// broken. Linux's default is a quarter of an hour, and requests would wait for their own
	// timeout. It covers the next hop only, which for other clusters is the egress proxy.
	peerTimeout = 3 * time.Second

	// TCP_USER_TIMEOUT of Linux, in milliseconds (tcp(7)). The numbers are literal because they are
	// for Envoy's system, not for the one of this build.
	ipprotoTCP     = 6
	tcpUserTimeout = 18
)

// detectDeadPeers makes Envoy detect endpoints that disappear without closing their connections, unless
// a patch binds sockets.
func detectDeadPeers(c *clusterv3.Cluster) {
	if c.GetUpstreamBindConfig() != nil {
		return
	}
	c.UpstreamBindConfig = &corev3.BindConfig{SocketOptions: []*corev3.SocketOption{{
		Description: "TCP_USER_TIMEOUT",
		Level:       ipprotoTCP,
		Name:        tcpUserTimeout,
		Value:       &corev3.SocketOption_IntValue{IntValue: peerTimeout.Milliseconds()},
		State:       corev3.SocketOption_STATE_PREBIND,
	}}}
}
