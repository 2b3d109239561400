// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Plain reports whether a cluster speaks no TLS to its endpoints: it has no socket, or the one in
// which Envoy Gateway wraps plaintext for a BackendTrafficPolicy with proxyProtocol
// (buildProxyProtocolSocket in its internal/xds/translator/cluster.go).
func Plain(c *clusterv3.Cluster) bool {
	s := c.GetTransportSocket()
	if s == nil {
		return true
	}
	p := proxyProtocol(s)
	return p != nil && (p.GetTransportSocket() == nil || p.GetTransportSocket().GetTypedConfig().MessageIs((*rawbufferv3.RawBuffer)(nil)))
}

// proxyProtocol returns the configuration of a socket that sends a PROXY protocol header. Nil for
// others.
func proxyProtocol(s *corev3.TransportSocket) *proxyprotocolv3.ProxyProtocolUpstreamTransport {
	p := &proxyprotocolv3.ProxyProtocolUpstreamTransport{}
	if a := s.GetTypedConfig(); !a.MessageIs(p) || a.UnmarshalTo(p) != nil {
		return nil
	}
	return p
}

// encloseSocket puts a socket into the cluster's socket that sends a PROXY protocol header, or
// makes it the cluster's socket if there is none: the header precedes TLS.
func encloseSocket(c *clusterv3.Cluster, s *corev3.TransportSocket) error {
	p := proxyProtocol(c.GetTransportSocket())
	if p == nil {
		c.TransportSocket = s
		return nil
	}
	p.TransportSocket = s
	return setConfig(c.GetTransportSocket(), p)
}

// editTLS changes the TLS context of a socket, which may be inside one that sends a PROXY protocol
// header. False means that the socket speaks no TLS.
func editTLS(s *corev3.TransportSocket, edit func(*tlsv3.UpstreamTlsContext)) (bool, error) {
	if p := proxyProtocol(s); p != nil {
		inner := p.GetTransportSocket()
		if ok, err := editTLS(inner, edit); !ok || err != nil {
			return ok, err
		}
		return true, setConfig(s, p)
	}
	t := &tlsv3.UpstreamTlsContext{}
	if !s.GetTypedConfig().MessageIs(t) {
		return false, nil
	}
	if err := s.GetTypedConfig().UnmarshalTo(t); err != nil {
		return false, errors.Wrap(err, "cannot read TLS context")
	}
	edit(t)
	return true, setConfig(s, t)
}

func setConfig(s *corev3.TransportSocket, m proto.Message) error {
	a, err := packAny(m)
	if err != nil {
		return errors.Wrap(err, "cannot marshal transport socket")
	}
	s.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: a}
	return nil
}
