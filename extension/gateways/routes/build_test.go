// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"testing"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// TestRewrite checks the host name and path that a backend receives.
func TestRewrite(t *testing.T) {
	cases := map[string]struct {
		reason       string
		prefix, fqdn string
		want         string
	}{
		"Nothing": {reason: "Without a path prefix and a host name no filter is needed.", prefix: "/", want: "none"},
		"Path":    {reason: "The filter removes the prefix.", prefix: "/a", want: "/"},
		"Host":    {reason: "The filter sets the host name of the service.", prefix: "/", fqdn: "a.b", want: "a.b"},
		"Both":    {reason: "The filter changes both.", prefix: "/a", fqdn: "a.b", want: "a.b/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &Desired{fqdn: tc.fqdn}
			w.PathPrefix = tc.prefix
			got := "none"
			if f := rewrite(w); f != nil {
				got = ""
				if f.Hostname != nil {
					got += string(*f.Hostname)
				}
				if f.Path != nil {
					got += *f.Path.ReplacePrefixMatch
				}
			}
			if got != tc.want {
				t.Errorf("%s\nrewrite(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestDescription checks that the description of a route is one line for any name of a device.
func TestDescription(t *testing.T) {
	o := &gatewayv1alpha1.TailscaleGateway{}
	o.Namespace, o.Name = "shop", "web"
	w := &Desired{target: "the device a\nb\x1b[2J\u2028c of tailnet prod"}
	w.Hostname, w.PathPrefix, w.Tailnet = "nas.tailscale.local", "/", "prod"
	want := "Generated for TailscaleGateway shop/web, which sends nas.tailscale.local/ to the device a b [2J c of tailnet prod. To change it, edit routeGeneration of tailnet prod there: changes to this object are undone."
	if got := metaOf(o, w).Annotations[descriptionKey]; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
