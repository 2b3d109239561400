// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// TestImages checks which images and pull secrets proxies get by the flags that the chart sets.
func TestImages(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   proxy.Images
	}{
		"Default":  {reason: "The agent has the version of the provider.", want: proxy.Images{Tailscale: products.Tailscale, Agent: products.Image(products.Agent, version.Version)}},
		"Registry": {reason: "A mirror has the agent, too, but not tailscaled, whose path is another one.", args: []string{"--image-registry=registry.example/mirror"}, want: proxy.Images{Tailscale: products.Tailscale, Agent: "registry.example/mirror/agent:" + version.Version}},
		"Own": {
			reason: "An image that is named wins.",
			args:   []string{"--image-registry=registry.example/mirror", "--agent-image=example.org/agent:v1", "--tailscale-image=example.org/tailscale:v1", "--image-pull-secrets=mirror", "--image-pull-secrets=hub"},
			want:   proxy.Images{Tailscale: "example.org/tailscale:v1", Agent: "example.org/agent:v1", PullSecrets: []string{"mirror", "hub"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, err := program().Parse(tc.args, func(string) (string, bool) { return "", false })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, run.(*runCmd).options().Images); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
