// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestAppendSettings checks that clusters have the same bytes if, and only if, their settings are equal.
func TestAppendSettings(t *testing.T) {
	socket := func(m proto.Message) *corev3.TransportSocket {
		a, err := packAny(m)
		if err != nil {
			t.Fatal(err)
		}
		return &corev3.TransportSocket{Name: "socket", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: a}}
	}
	cases := map[string]struct {
		reason string
		change func(c *clusterv3.Cluster)
		same   bool
	}{
		"Name":      {reason: "The route's names are no settings.", change: func(c *clusterv3.Cluster) { c.Name, c.AltStatName = "other", "other" }, same: true},
		"Metadata":  {reason: "Nor is its identity.", change: func(c *clusterv3.Cluster) { c.Metadata = &corev3.Metadata{} }, same: true},
		"Endpoints": {reason: "Nor are the backends.", change: func(c *clusterv3.Cluster) { c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: "other"} }, same: true},
		"List": {reason: "Nor is their list.", change: func(c *clusterv3.Cluster) {
			c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: "other"}
		}, same: true},
		"Discovery": {reason: "Nor is how Envoy finds them.", change: func(c *clusterv3.Cluster) {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		}, same: true},
		"Family": {reason: "Nor are their address families.", change: func(c *clusterv3.Cluster) { c.DnsLookupFamily = clusterv3.Cluster_V6_ONLY }, same: true},
		"Matches": {reason: "Nor is the socket of one of them.", change: func(c *clusterv3.Cluster) {
			c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls"}}
		}, same: true},
		"TLS": {reason: "Nor is TLS to them.", change: func(c *clusterv3.Cluster) { c.TransportSocket = socket(&tlsv3.UpstreamTlsContext{Sni: "other"}) }, same: true},
		"Proxied": {reason: "A PROXY protocol header is a setting.", change: func(c *clusterv3.Cluster) {
			c.TransportSocket = socket(&proxyprotocolv3.ProxyProtocolUpstreamTransport{})
		}},
		"Timeout":    {reason: "A timeout is a setting.", change: func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(1) }},
		"Buffer":     {reason: "A limit is a setting.", change: func(c *clusterv3.Cluster) { c.PerConnectionBufferLimitBytes = wrapperspb.UInt32(1) }},
		"Unknown":    {reason: "A field that this version does not know is a setting.", change: func(c *clusterv3.Cluster) { c.ProtoReflect().SetUnknown([]byte{0xf8, 0x3f, 1}) }},
		"Unchanged":  {reason: "Equal clusters have equal settings.", change: func(*clusterv3.Cluster) {}, same: true},
		"HealthHost": {reason: "A health check is a setting.", change: func(c *clusterv3.Cluster) { c.HealthChecks = []*corev3.HealthCheck{{}} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := read(t, template), read(t, template)
			tc.change(to)
			original := proto.CloneOf(to)
			got := settingsOfBoth(t, from, to)
			if !proto.Equal(original, to) {
				t.Errorf("\n%s\nAppendSettings(...) changed the cluster:\n%v", tc.reason, to)
			}
			if got.sameBytes != tc.same || got.sameSettings != tc.same {
				t.Errorf("\n%s\nAppendSettings(...): same bytes: %t, NewSettings(...): equal: %t, want %t", tc.reason, got.sameBytes, got.sameSettings, tc.same)
			}
		})
	}
}

type comparison struct{ sameBytes, sameSettings bool }

// settingsOfBoth compares the settings of two clusters.
func settingsOfBoth(t *testing.T, a, b *clusterv3.Cluster) comparison {
	t.Helper()
	var bytes [2][]byte
	var settings [2]Settings
	for i, c := range []*clusterv3.Cluster{a, b} {
		var err error
		if bytes[i], err = AppendSettings(nil, c); err != nil {
			t.Fatal(err)
		}
		if settings[i], err = NewSettings(c, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	return comparison{sameBytes: string(bytes[0]) == string(bytes[1]), sameSettings: proto.Equal(settings[0].Template, settings[1].Template)}
}
