// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// listenerAt returns a listener at a port with the routes of a Gateway's listener, and with the
// early header mutations of a ClientTrafficPolicy.
func listenerAt(name string, port uint32, gateway, section string) Resources {
	at := address(corev3.SocketAddress_TCP)
	at.GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: port}
	return Resources{
		Listeners: []*listenerv3.Listener{{Name: name, Address: at, FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: toAny(&hcmv3.HttpConnectionManager{
				StatPrefix:                    "http",
				RouteSpecifier:                &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: name}},
				EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{{Name: "envoy.http.early_header_mutation.header_mutation"}},
			})}}},
		}}}},
		Routes: []*routev3.RouteConfiguration{{Name: name, VirtualHosts: []*routev3.VirtualHost{{
			Name: name + "/*", Domains: []string{"*"}, Metadata: ofResource("Gateway", gateway, section),
		}}}},
	}
}

func TestStripIdentityHeaders(t *testing.T) {
	listeners := map[types.NamespacedName][]ir.IdentityListener{nn("default", "gw"): {{Name: "tailnet", Port: 80}, {Name: "high", Port: 8080}}}
	cases := map[string]struct {
		reason     string
		identified map[types.NamespacedName][]ir.IdentityListener
		resources  Resources
		want       bool
	}{
		"Nobody":      {reason: "Without a TailscaleGateway nothing should change.", resources: listenerAt("l", 8888, "gw", "http")},
		"Other":       {reason: "A listener beside an identity listener should remove the headers of clients.", identified: listeners, resources: listenerAt("l", 8888, "gw", "http"), want: true},
		"Identity":    {reason: "The identity listener should not change.", identified: listeners, resources: listenerAt("l", 8080, "gw", "high")},
		"Privileged":  {reason: "Envoy listens for a privileged port at a higher one.", identified: listeners, resources: listenerAt("l", 10080, "gw", "tailnet")},
		"AsItIs":      {reason: "Envoy may also listen at the privileged port.", identified: listeners, resources: listenerAt("l", 80, "gw", "tailnet")},
		"Namesake":    {reason: "A ListenerSet's listener of the same name at another port is another listener.", identified: listeners, resources: listenerAt("l", 9090, "gw", "high"), want: true},
		"SamePort":    {reason: "Another listener name at the same port is not the identity listener.", identified: listeners, resources: listenerAt("l", 8080, "gw", "http"), want: true},
		"OtherOwner":  {reason: "Another Gateway's listener should not change.", identified: listeners, resources: listenerAt("l", 8888, "gw2", "http")},
		"NotThere":    {reason: "While the identity listener does not exist, all listeners should remove the headers.", identified: map[types.NamespacedName][]ir.IdentityListener{nn("default", "gw"): {}}, resources: listenerAt("l", 8080, "gw", "high"), want: true},
		"WithoutHTTP": {reason: "A listener without HTTP has no headers.", identified: listeners, resources: Resources{Listeners: []*listenerv3.Listener{{Name: "tcp", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "tcp"}}}}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			previous := marshal(t, tc.resources)
			s := ir.NewSnapshot(ir.Contents{IdentityListeners: tc.identified})
			out, _ := Translate(s, testSource, tc.resources)
			first := marshal(t, out)
			if !tc.want {
				if diff := cmp.Diff(previous, first); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			m := &hcmv3.HttpConnectionManager{}
			if err := out.Listeners[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range m.GetEarlyHeaderMutationExtensions() {
				got = append(got, e.GetName())
			}
			if diff := cmp.Diff([]string{xds.IdentityMutation, "envoy.http.early_header_mutation.header_mutation"}, got); diff != "" {
				t.Errorf("%s\nheader mutations: -want, +got:\n%s", tc.reason, diff)
			}
			if err := m.GetEarlyHeaderMutationExtensions()[0].ValidateAll(); err != nil {
				t.Errorf("Envoy would refuse it: %v", err)
			}
			second, _ := Translate(s, testSource, out)
			if diff := cmp.Diff(first, marshal(t, second)); diff != "" {
				t.Errorf("a second run should change nothing: -want, +got:\n%s", diff)
			}
		})
	}
}
