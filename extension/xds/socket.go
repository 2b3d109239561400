// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

const (
	// deathTimeout is how long what was sent to an endpoint may stay without an
	// acknowledgement before its connection counts as broken. Linux itself takes a
	// quarter of an hour, and requests would wait for their own timeout. It sees
	// the next hop only, which for other clusters is the egress proxy.
	deathTimeout = 3 * time.Second

	// TCP_USER_TIMEOUT of Linux, in milliseconds (tcp(7)). Spelled out, for the
	// Envoy's system is meant, and not the one that this is built for.
	ipprotoTCP     = 6
	tcpUserTimeout = 18
)

// noticeDeath of endpoints that go without a word, unless somebody else binds sockets.
func noticeDeath(c *clusterv3.Cluster) {
	if c.GetUpstreamBindConfig() != nil {
		return
	}
	c.UpstreamBindConfig = &corev3.BindConfig{SocketOptions: []*corev3.SocketOption{{
		Description: "TCP_USER_TIMEOUT",
		Level:       ipprotoTCP,
		Name:        tcpUserTimeout,
		Value:       &corev3.SocketOption_IntValue{IntValue: deathTimeout.Milliseconds()},
		State:       corev3.SocketOption_STATE_PREBIND,
	}}}
}
