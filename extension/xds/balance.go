// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"bytes"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// sticky are the load balancers that keep a client with an endpoint.
var sticky = map[string]bool{
	"envoy.load_balancing_policies.maglev":        true,
	"envoy.load_balancing_policies.ring_hash":     true,
	"envoy.load_balancing_policies.override_host": true,
}

// Sticky reports whether a cluster keeps a client with one endpoint. A split by weight before such
// a cluster would move clients between endpoints.
func Sticky(c *clusterv3.Cluster) bool {
	for _, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		if sticky[p.GetTypedExtensionConfig().GetName()] {
			return true
		}
	}
	return false
}

// balance sets the shape's load balancer, unless a policy chose another than Envoy Gateway's
// default. A cluster without a load balancer gets that default: Envoy's own default ignores the
// weights of localities, which are those of backends and zones.
func balance(c *clusterv3.Cluster, lb ir.LoadBalancer) error {
	set := len(c.GetLoadBalancingPolicy().GetPolicies()) > 0
	if !unbalanced(c.GetLoadBalancingPolicy()) || set && lb != ir.RoundRobin {
		return nil
	}
	name, policy := string(ir.LeastRequest), proto.Message(leastRequest())
	if lb == ir.RoundRobin {
		name, policy = string(lb), &roundrobinv3.RoundRobin{LocalityLbConfig: byWeight()}
	}
	a, err := packAny(policy)
	if err != nil {
		return errors.Wrap(err, "cannot marshal load balancer")
	}
	c.LoadBalancingPolicy = &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: "envoy.load_balancing_policies." + name, TypedConfig: a},
	}}}
	return nil
}

// PrefersZone reports whether requests stay in Envoy's zone because of the target's Services: weights
// of zones in a policy take precedence (buildXdsClusterLoadAssignment in Envoy Gateway's
// internal/xds/translator/cluster.go).
func PrefersZone(s *ir.Shape, t ir.Tuning) bool { return s.PreferZone > 0 && len(t.Zones) == 0 }

// preferZone makes a cluster's load balancer prefer Envoy's zone, unless a policy already has it do so,
// with the settings of Envoy Gateway for Services (buildZoneAwareLbConfig in the same file). It
// changes no load balancer that has no zones.
func preferZone(c *clusterv3.Cluster, threshold uint32) error {
	for _, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		err := editZones(p.GetTypedExtensionConfig(), func(zones *commonv3.LocalityLbConfig) *commonv3.LocalityLbConfig {
			if zones.GetZoneAwareLbConfig() != nil {
				return zones
			}
			return nearFrom(threshold)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// editZones changes how a load balancer chooses among localities. One that has no zones, or for which
// edit returns the same, stays as it is.
func editZones(config *corev3.TypedExtensionConfig, edit func(*commonv3.LocalityLbConfig) *commonv3.LocalityLbConfig) error {
	lr, rr, random := &leastrequestv3.LeastRequest{}, &roundrobinv3.RoundRobin{}, &randomv3.Random{}
	for _, m := range []struct {
		proto.Message
		config **commonv3.LocalityLbConfig
	}{{lr, &lr.LocalityLbConfig}, {rr, &rr.LocalityLbConfig}, {random, &random.LocalityLbConfig}} {
		if !config.GetTypedConfig().MessageIs(m.Message) || config.GetTypedConfig().UnmarshalTo(m.Message) != nil {
			continue
		}
		previous := *m.config
		if *m.config = edit(previous); *m.config == previous {
			continue
		}
		a, err := packAny(m.Message)
		if err != nil {
			return errors.Wrap(err, "cannot marshal load balancer")
		}
		config.TypedConfig = a
	}
	return nil
}

// nearFrom returns the preference of Envoy's zone that Envoy Gateway makes of a Service, for zones with
// as many endpoints.
func nearFrom(n uint32) *commonv3.LocalityLbConfig {
	return &commonv3.LocalityLbConfig{LocalityConfigSpecifier: &commonv3.LocalityLbConfig_ZoneAwareLbConfig_{
		ZoneAwareLbConfig: &commonv3.LocalityLbConfig_ZoneAwareLbConfig{
			MinClusterSize: wrapperspb.UInt64(uint64(n)),
			ForceLocalZone: &commonv3.LocalityLbConfig_ZoneAwareLbConfig_ForceLocalZone{MinSize: wrapperspb.UInt32(n)},
		},
	}}
}

// unbalanced reports whether the policy is Envoy Gateway's default, which no user chose
// (internal/xds/translator/cluster.go).
func unbalanced(p *clusterv3.LoadBalancingPolicy) bool {
	if len(p.GetPolicies()) == 0 {
		return true
	}
	if len(p.GetPolicies()) > 1 {
		return false
	}
	a := p.GetPolicies()[0].GetTypedExtensionConfig().GetTypedConfig()
	if !a.MessageIs((*leastrequestv3.LeastRequest)(nil)) {
		return false
	}
	// The usual case, without decoding.
	if bytes.Equal(a.GetValue(), defaultLeastRequest) {
		return true
	}
	decoded := &leastrequestv3.LeastRequest{}
	return a.UnmarshalTo(decoded) == nil && proto.Equal(decoded, leastRequest())
}

// defaultLeastRequest is Envoy Gateway's default as bytes. Messages with other bytes may still be
// equal to it.
var defaultLeastRequest = func() []byte {
	a, err := packAny(leastRequest())
	if err != nil {
		return nil
	}
	return a.GetValue()
}()

func leastRequest() *leastrequestv3.LeastRequest {
	return &leastrequestv3.LeastRequest{LocalityLbConfig: byWeight()}
}

func byWeight() *commonv3.LocalityLbConfig {
	return &commonv3.LocalityLbConfig{LocalityConfigSpecifier: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig_{
		LocalityWeightedLbConfig: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig{},
	}}
}
