// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vacant

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

var sliceName = types.NamespacedName{Namespace: "shop", Name: "tailscale-vacant-installed-app"}

func target(port int32, p ir.Protocol, vacant *ir.VacantPort) *ir.Target {
	return &ir.Target{Key: ir.TargetKey{Kind: ir.TargetFailover, Namespace: "shop", Name: "app", Port: port, Protocol: p}, Vacant: vacant}
}

// route returns a route of a namespace that names the Service of targets, with failover unless there are no
// Gateways.
func route(namespace string, targets []*ir.Target, gateways ...types.NamespacedName) []*ir.Route {
	var out []*ir.Route
	for _, t := range targets {
		for kind, p := range map[ir.RouteKind]ir.Protocol{ir.KindHTTPRoute: ir.ProtocolHTTP, ir.KindGRPCRoute: ir.ProtocolGRPC, ir.KindTCPRoute: ir.ProtocolTCP} {
			if p != t.Key.Protocol {
				continue
			}
			n := types.NamespacedName{Namespace: t.Key.Namespace, Name: t.Key.Name}
			out = append(out, &ir.Route{
				Key:      ir.RouteKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("r%d", t.Key.Port)}},
				Failover: gateways,
				Rules:    []ir.Rule{{Backends: []ir.BackendRef{{Kind: ir.BackendService, NamespacedName: n, Port: t.Key.Port, Weight: 1}}}},
			})
		}
	}
	return out
}

func TestDesired(t *testing.T) {
	cases := map[string]struct {
		reason  string
		targets []*ir.Target

		// namespace of the route. The default is that of the Service.
		namespace string
		gateways  []types.NamespacedName
		want      map[types.NamespacedName]string
	}{
		"NoFailover": {
			reason:  "A route without failover needs none.",
			targets: []*ir.Target{target(80, ir.ProtocolHTTP, &ir.VacantPort{Name: "http"})}, gateways: []types.NamespacedName{},
			want: map[types.NamespacedName]string{},
		},
		"NotPermitted": {
			reason:  "A route of another namespace without a grant changes nothing there.",
			targets: []*ir.Target{target(80, ir.ProtocolHTTP, &ir.VacantPort{Name: "http"})}, namespace: "other",
			want: map[types.NamespacedName]string{},
		},
		"Ready": {
			reason:  "A Service with a ready endpoint needs none.",
			targets: []*ir.Target{target(80, ir.ProtocolHTTP, nil)},
			want:    map[types.NamespacedName]string{},
		},
		"Ports": {
			reason: "A Service has one EndpointSlice, with each port once.",
			targets: []*ir.Target{
				target(80, ir.ProtocolHTTP, &ir.VacantPort{Name: "http"}), target(80, ir.ProtocolTCP, &ir.VacantPort{Name: "http"}), target(9000, ir.ProtocolGRPC, &ir.VacantPort{Name: "grpc"}),
			},
			want: map[types.NamespacedName]string{sliceName: "app IPv4 grpc:9000 http:80"},
		},
		"IPv6": {
			reason:  "The only port of a Service may have no name. Its family is the Service's.",
			targets: []*ir.Target{target(80, ir.ProtocolHTTP, &ir.VacantPort{IPv6: true})},
			want:    map[types.NamespacedName]string{{Namespace: "shop", Name: sliceName.Name + "-ipv6"}: "app IPv6 :80"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &writer{label: installed}
			if tc.gateways == nil {
				tc.gateways = []types.NamespacedName{{Namespace: "shop", Name: "gw"}}
			}
			got := w.desired(ir.NewSnapshot(ir.Contents{Targets: tc.targets, Routes: route(namespaceOf(tc.namespace), tc.targets, tc.gateways...)}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ndesired(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func namespaceOf(n string) string {
	if n == "" {
		return "shop"
	}
	return n
}

// slice returns the EndpointSlice that a writer makes for a state.
func slice(t *testing.T, w *writer, state string) *discoveryv1.EndpointSlice {
	t.Helper()
	u, err := w.build(sliceName, state)
	if err != nil {
		t.Fatal(err)
	}
	out := &discoveryv1.EndpointSlice{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestState(t *testing.T) {
	w, another := &writer{label: installed}, &writer{label: "gateway-gw"}
	const state = "app IPv4 grpc:9000 http:80"
	cases := map[string]struct {
		reason string
		change func(s *discoveryv1.EndpointSlice)
		want   string
	}{
		"Built": {reason: "An EndpointSlice has the state that it is built from.", change: func(*discoveryv1.EndpointSlice) {}, want: state},
		"IPv6": {
			reason: "So has one of IPv6.",
			change: func(s *discoveryv1.EndpointSlice) { *s = *slice(t, w, "app IPv6 :80") }, want: "app IPv6 :80",
		},
		"Another": {
			reason: "That of another extension is not managed.",
			change: func(s *discoveryv1.EndpointSlice) { *s = *slice(t, another, state) },
		},
		"Foreign": {
			reason: "Neither is one of the cluster.",
			change: func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{discoveryv1.LabelServiceName: "app"} },
		},
		"Ready": {
			reason: "An endpoint that has become ready is replaced.",
			change: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr.To(true) }, want: altered,
		},
		"Address": {
			reason: "So is another address.",
			change: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.0.0.1"} }, want: altered,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := slice(t, w, state)
			tc.change(s)
			if got := w.state(s); got != tc.want {
				t.Errorf("\n%s\nstate(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, state := range []string{"", "app", "app IPv4", "app IPv4 http:x"} {
		if _, err := (&writer{label: installed}).build(sliceName, state); err == nil {
			t.Errorf("build(%q): no error", state)
		}
	}
}
