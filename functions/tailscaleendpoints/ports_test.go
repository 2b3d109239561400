// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestIngressPorts(t *testing.T) {
	type limits = tailnetv1alpha1.ProxySetPorts
	written := func(l *limits) *tailnetv1alpha1.ProxySet {
		return &tailnetv1alpha1.ProxySet{Spec: tailnetv1alpha1.ProxySetSpec{IngressPorts: l}}
	}
	https := gatewayv1alpha1.EndpointsPorts{{Port: 443}}
	cases := map[string]struct {
		reason   string
		ports    gatewayv1alpha1.EndpointsPorts
		observed *tailnetv1alpha1.ProxySet
		want     *limits
	}{
		"None": {
			reason: "Without a list all ports are allowed.",
			want:   &limits{All: true},
		},
		"NoneBefore": {
			reason:   "Without a list there is nothing to keep, whatever version wrote the ProxySet.",
			observed: written(nil),
			want:     &limits{All: true},
		},
		"New": {
			reason: "The list of a new object counts at once. UDP is for egress.",
			ports:  gatewayv1alpha1.EndpointsPorts{{Port: 8443, Protocol: gatewayv1alpha1.EndpointProtocolHTTPS}, {Port: 53, Protocol: gatewayv1alpha1.EndpointProtocolUDP}, {Port: 80}},
			want:   &limits{Allowed: []int32{80, 8443}},
		},
		"OnlyUDP": {
			reason: "A list without a port for services is still a list.",
			ports:  gatewayv1alpha1.EndpointsPorts{{Port: 53, Protocol: gatewayv1alpha1.EndpointProtocolUDP}},
			want:   &limits{},
		},
		"Upgrade": {
			reason:   "An earlier version did not write the list: what is hosted stays.",
			ports:    https,
			observed: written(nil),
			want:     &limits{Allowed: []int32{443}, KeepHosted: true},
		},
		"UnchangedSinceUpgrade": {
			reason:   "A list that has not changed keeps what is hosted.",
			ports:    https,
			observed: written(&limits{Allowed: []int32{443}, KeepHosted: true}),
			want:     &limits{Allowed: []int32{443}, KeepHosted: true},
		},
		"ChangedSinceUpgrade": {
			reason:   "A list that changes is a decision about services.",
			ports:    https,
			observed: written(&limits{Allowed: []int32{80, 443}, KeepHosted: true}),
			want:     &limits{Allowed: []int32{443}},
		},
		"Added": {
			reason:   "A list where there was none is such a decision, too.",
			ports:    https,
			observed: written(&limits{All: true}),
			want:     &limits{Allowed: []int32{443}},
		},
		"Removed": {
			reason:   "Without the list all ports are allowed again.",
			observed: written(&limits{Allowed: []int32{443}, KeepHosted: true}),
			want:     &limits{All: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts{spec: gatewayv1alpha1.TailscaleEndpointsSpec{Ports: tc.ports}, observed: observed{proxySet: tc.observed}}
			if diff := cmp.Diff(tc.want, ingressPorts(f)); diff != "" {
				t.Errorf("\n%s\ningressPorts(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
