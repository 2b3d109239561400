// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"bytes"
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// speakHTTP2 makes a cluster speak HTTP/2 to endpoints: Envoy Gateway sets it for Services by their
// appProtocol, and has no such setting for our kinds. A policy that follows the client's protocol
// stays.
func speakHTTP2(c *clusterv3.Cluster, h ir.HTTP2) error {
	return editHTTP(c, func(o *httpv3.HttpProtocolOptions) bool {
		switch u := o.GetUpstreamProtocolOptions().(type) {
		case *httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig, *httpv3.HttpProtocolOptions_AutoConfig:
			return false
		case *httpv3.HttpProtocolOptions_ExplicitHttpConfig_:
			if u.ExplicitHttpConfig.GetHttp2ProtocolOptions() != nil {
				return false
			}
		}
		o.UpstreamProtocolOptions = explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
				Http2ProtocolOptions: http2(h),
			},
		})
		return true
	})
}

// http2 returns a policy's HTTP/2 options, with the windows of Envoy Gateway where it sets none
// (buildHTTP2Settings in its internal/xds/translator/cluster.go): those of Envoy are 256 MiB. Envoy
// refuses pings without a timeout.
func http2(h ir.HTTP2) *corev3.Http2ProtocolOptions {
	out := &corev3.Http2ProtocolOptions{
		InitialStreamWindowSize:     wrapperspb.UInt32(cmp.Or(h.StreamWindow, streamWindow)),
		InitialConnectionWindowSize: wrapperspb.UInt32(cmp.Or(h.ConnectionWindow, connectionWindow)),
	}
	if h.Streams > 0 {
		out.MaxConcurrentStreams = wrapperspb.UInt32(h.Streams)
	}
	if h.OnInvalidMessage == ir.EndStream || h.OnInvalidMessage == ir.EndConnection {
		out.OverrideStreamErrorOnInvalidHttpMessage = wrapperspb.Bool(h.OnInvalidMessage == ir.EndStream)
	}
	if h.Timeout == 0 {
		return out
	}
	out.ConnectionKeepalive = &corev3.KeepaliveSettings{Timeout: durationpb.New(h.Timeout)}
	if h.Interval > 0 {
		out.ConnectionKeepalive.Interval = durationpb.New(h.Interval)
	}
	if h.Idle > 0 {
		out.ConnectionKeepalive.ConnectionIdleInterval = durationpb.New(h.Idle)
	}
	if h.JitterSet {
		out.ConnectionKeepalive.IntervalJitter = &typev3.Percent{Value: float64(h.Jitter)}
	}
	return out
}

// speakHTTP1 makes a cluster speak HTTP/1 if its HTTP/2 was for other backends. Other settings of
// policies stay.
func speakHTTP1(c *clusterv3.Cluster) error {
	err := editHTTP(c, func(o *httpv3.HttpProtocolOptions) bool {
		if o.GetExplicitHttpConfig().GetHttp2ProtocolOptions() == nil {
			return false
		}
		o.UpstreamProtocolOptions = explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
			},
		})
		return true
	})
	if bytes.Equal(c.GetTypedExtensionProtocolOptions()[httpOptions].GetValue(), defaultHTTP) {
		// Envoy Gateway omits the options then, as in other routes' clusters.
		delete(c.TypedExtensionProtocolOptions, httpOptions)
	}
	return err
}

// defaultHTTP is the bytes of options with HTTP/1 only.
var defaultHTTP = func() []byte {
	a, err := packAny(&httpv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
			HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
		},
	})})
	if err != nil {
		return nil
	}
	return a.GetValue()
}()

// Speaks reports whether a cluster may speak HTTP/2 to endpoints that speak only that, or HTTP/1 to
// those that do not speak HTTP/2. A cluster that follows its clients may do both.
func Speaks(c *clusterv3.Cluster, http2 bool) bool {
	o := &httpv3.HttpProtocolOptions{}
	if a := c.GetTypedExtensionProtocolOptions()[httpOptions]; a != nil && a.UnmarshalTo(o) != nil {
		return false
	}
	if o.GetUseDownstreamProtocolConfig() != nil || o.GetAutoConfig() != nil {
		return true
	}
	return http2 == (o.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil)
}

// followName makes the cluster use the name in the request for SNI and verification.
func followName(c *clusterv3.Cluster) error {
	return editHTTP(c, func(o *httpv3.HttpProtocolOptions) bool {
		if o.GetUpstreamProtocolOptions() == nil {
			// Envoy requires a protocol; this is its default.
			o.UpstreamProtocolOptions = explicit(&httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
					HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
				},
			})
		}
		if o.UpstreamHttpProtocolOptions == nil {
			o.UpstreamHttpProtocolOptions = &corev3.UpstreamHttpProtocolOptions{}
		}
		o.UpstreamHttpProtocolOptions.AutoSni = true
		o.UpstreamHttpProtocolOptions.AutoSanValidation = true
		return true
	})
}

func explicit(c *httpv3.HttpProtocolOptions_ExplicitHttpConfig) *httpv3.HttpProtocolOptions_ExplicitHttpConfig_ {
	return &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: c}
}

// editHTTP changes the HTTP options of a cluster. They stay as they are unless edit reports a
// change.
func editHTTP(c *clusterv3.Cluster, edit func(*httpv3.HttpProtocolOptions) bool) error {
	o := &httpv3.HttpProtocolOptions{}
	if a := c.GetTypedExtensionProtocolOptions()[httpOptions]; a != nil {
		if err := a.UnmarshalTo(o); err != nil {
			return errors.Wrap(err, "cannot decode HTTP options")
		}
	}
	if !edit(o) {
		return nil
	}
	a, err := packAny(o)
	if err != nil {
		return errors.Wrap(err, "cannot marshal HTTP options")
	}
	if c.TypedExtensionProtocolOptions == nil {
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{}
	}
	c.TypedExtensionProtocolOptions[httpOptions] = a
	return nil
}
