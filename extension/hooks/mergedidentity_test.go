// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// sharedListener returns a listener of Envoy with a virtual host for each of several Gateway API
// listeners, GATEWAY and NAME.
func sharedListener(port uint32, listeners ...[2]string) Resources {
	r := listenerAt("default/a/http", port, "", "")
	c := r.Routes[0]
	c.VirtualHosts = nil
	for _, o := range listeners {
		c.VirtualHosts = append(c.VirtualHosts, &routev3.VirtualHost{
			Name: "default/a/http/" + o[0] + "_" + o[1], Domains: []string{o[0] + "." + o[1]}, Metadata: ofResource("Gateway", o[0], o[1]),
			Routes: []*routev3.Route{
				matching("alice", equalTo("Tailscale-User-Login", "alice")), matching("any", &routev3.HeaderMatcher{
					Name: "tailscale_user_login", HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true},
				}),
				matching("none", &routev3.HeaderMatcher{
					Name: "tailscale-user-login", HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}, InvertMatch: true,
				}),
				matching("other", equalTo("X-Other", "1")),
			},
		})
	}
	return r
}

func matching(name string, h *routev3.HeaderMatcher) *routev3.Route {
	r := egRoute(name, prefix("/"), to("other"))
	r.Match.Headers = []*routev3.HeaderMatcher{h}
	return r
}

func equalTo(name, value string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}},
	}}
}

// TestStripIdentityHeadersOfSome checks that listeners at one port differ: identity headers are
// removed from exactly the requests to those that are no identity listeners, and their routes cannot
// match on a forged header.
func TestStripIdentityHeadersOfSome(t *testing.T) {
	identified := map[types.NamespacedName][]ir.IdentityListener{
		nn("default", "a"): {{Name: "tailnet", Port: 8080}}, nn("default", "b"): {{Name: "tailnet", Port: 9090}},
	}
	intact, stripped := []string{"alice", "any", "none", "other"}, []string{"none", "other"}
	cases := map[string]struct {
		reason    string
		resources Resources
		want      map[string][]string

		// filter reports that the listener has the filter, and early that it removes headers from all
		// requests.
		filter, early bool
	}{
		"Merged": {
			reason:    "The identity listener of a Gateway should not make another trust clients.",
			resources: sharedListener(8080, [2]string{"a", "tailnet"}, [2]string{"b", "http"}),
			want:      map[string][]string{"a.tailnet": intact, "b.http": stripped}, filter: true,
		},
		"MergedWithout": {
			reason:    "A Gateway without identity listeners should be as if there were no other Gateway.",
			resources: sharedListener(8080, [2]string{"a", "http"}, [2]string{"c", "http"}),
			want:      map[string][]string{"a.http": stripped, "c.http": intact}, filter: true,
		},
		"MergedAll": {
			reason:    "Envoy's listener should not change when another Gateway gets a host.",
			resources: sharedListener(8081, [2]string{"a", "http"}, [2]string{"b", "http"}),
			want:      map[string][]string{"a.http": stripped, "b.http": stripped}, filter: true,
		},
		"SamePort": {
			reason:    "Another listener of the Gateway at the port of its identity listener should remove headers.",
			resources: sharedListener(8080, [2]string{"a", "tailnet"}, [2]string{"a", "http"}),
			want:      map[string][]string{"a.tailnet": intact, "a.http": stripped}, filter: true,
		},
		"Alone": {
			reason:    "A listener without an identity listener should remove the headers before it matches routes.",
			resources: sharedListener(8081, [2]string{"a", "http"}, [2]string{"a", "other"}),
			want:      map[string][]string{"a.http": intact, "a.other": intact}, early: true,
		},
		"Identity": {
			reason:    "An identity listener alone should not change.",
			resources: sharedListener(8080, [2]string{"a", "tailnet"}),
			want:      map[string][]string{"a.tailnet": intact},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _ := Translate(ir.NewSnapshot(ir.Contents{IdentityListeners: identified}), testSource, tc.resources)
			got := map[string][]string{}
			for _, v := range out.Routes[0].GetVirtualHosts() {
				for _, r := range v.GetRoutes() {
					got[v.GetDomains()[0]] = append(got[v.GetDomains()[0]], r.GetName())
					if r.GetName() == "none" && len(r.GetMatch().GetHeaders()) > 0 != (len(tc.want[v.GetDomains()[0]]) == len(intact)) {
						t.Errorf("%s\n%s: the route without the header has the match %v", tc.reason, v.GetDomains()[0], r.GetMatch())
					}
				}
				if _, ok := v.GetTypedPerFilterConfig()[xds.IdentityMutation]; ok != (len(got[v.GetDomains()[0]]) == len(stripped)) {
					t.Errorf("%s\n%s: the virtual host removes headers: %t", tc.reason, v.GetDomains()[0], ok)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nroutes: -want, +got:\n%s", tc.reason, diff)
			}
			m := &hcmv3.HttpConnectionManager{}
			if err := out.Listeners[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			if filter := len(m.GetHttpFilters()) > 0 && m.GetHttpFilters()[0].GetName() == xds.IdentityMutation; filter != tc.filter {
				t.Errorf("%s\nthe listener has the filter: %t", tc.reason, filter)
			}
			if early := isIdentityMutation(m.GetEarlyHeaderMutationExtensions()[0]); early != tc.early {
				t.Errorf("%s\nthe listener removes all headers: %t", tc.reason, early)
			}
			if err := out.Routes[0].ValidateAll(); err != nil {
				t.Errorf("%s\nEnvoy would refuse it: %v", tc.reason, err)
			}
			first := marshal(t, out)
			second, _ := Translate(ir.NewSnapshot(ir.Contents{IdentityListeners: identified}), testSource, out)
			if diff := cmp.Diff(first, marshal(t, second)); diff != "" {
				t.Errorf("%s\na second run should change nothing: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
