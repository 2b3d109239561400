// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

func TestImages(t *testing.T) {
	list, err := ParseImages("ghcr.io/tailscale-gateway/agent:v0.1.0@" + digestOf("a") + "\n" +
		"ghcr.io/tailscale-gateway/extension:v0.1.0 registry.example.com/mirror/tailscale-gateway/extension@" + digestOf("b") + "\ndocker.io/tailscale/tailscale:v1.102.5\n")
	if err != nil {
		t.Fatal(err)
	}
	upgrade := func(chart, namespace string) string {
		return "helm upgrade --install " + chart + " oci://ghcr.io/tailscale-gateway/charts/" + chart + " --version=0.1.0 --namespace=" + namespace + " --reset-then-reuse-values"
	}
	const impact = "It is not that of the list. Copies of a registry have another digest if they lack an architecture: docs/airgap.md, Digests."
	cases := map[string]struct {
		reason string
		images Answer[[]Image]
		want   []Finding
	}{
		"Reported": {reason: "A tag is compared by the digest that runs.", images: Answer[[]Image]{Value: []Image{{Pod: "shop/web-0", Reference: "ghcr.io/tailscale-gateway/agent:v0.1.0", Digest: digestOf("a")}}}},
		"Named":    {reason: "A digest that the pod names is the one that runs, whatever the runtime calls it.", images: Answer[[]Image]{Value: []Image{{Pod: "shop/web-0", Reference: "mirror.example.com/agent@" + digestOf("a"), Digest: digestOf("f")}}}},
		"Unpinned": {reason: "The list pins no digest of Tailscale's image.", images: Answer[[]Image]{Value: []Image{{Pod: "shop/web-0", Reference: "docker.io/tailscale/tailscale:v1.100.0", Digest: digestOf("f")}}}},
		"Other": {
			reason: "Pods with another digest are named once for each digest.",
			images: Answer[[]Image]{Value: []Image{
				{Pod: "shop/web-1", Reference: "ghcr.io/tailscale-gateway/agent:v0.1.0", Digest: digestOf("c")},
				{Pod: "shop/web-0", Reference: "ghcr.io/tailscale-gateway/agent:v0.1.0", Digest: digestOf("c")},
				{Pod: "envoy-gateway-system/extension-x", Reference: "ghcr.io/tailscale-gateway/extension:v0.1.0@" + digestOf("d")},
			}},
			want: []Finding{
				{Status: Wrong, Summary: "The image agent is sha256:cccccccccccc instead of sha256:aaaaaaaaaaaa: pods shop/web-0, shop/web-1", Impact: impact, Fix: upgrade("tailscale-gateway", "crossplane-system")},
				{Status: Wrong, Summary: "The image extension is sha256:dddddddddddd instead of sha256:bbbbbbbbbbbb: pods envoy-gateway-system/extension-x", Impact: impact, Fix: upgrade("tailscale-gateway-extension", "envoy-gateway-system")},
			},
		},
		"Silent": {
			reason: "Without a digest nothing is known.", images: Answer[[]Image]{Value: []Image{{Pod: "shop/web-0", Reference: "ghcr.io/tailscale-gateway/agent:v0.1.0"}}},
			want: []Finding{{Status: Unknown, Summary: "which agent runs: the container runtime reports no digest for pods shop/web-0"}},
		},
		"Unread": {reason: "Nor without the right to read pods.", images: Answer[[]Image]{Unknown: "forbidden"}, want: []Finding{{Status: Unknown, Summary: "which images run: forbidden"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Facts{Listed: list, Images: tc.images}
			if diff := cmp.Diff(tc.want, images(f, defaults()).findings); diff != "" {
				t.Errorf("%s\nimages(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseImages(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   string
		want   string // The error.
	}{
		"Comments":  {reason: "Comments and empty lines are no images.", list: "# release\n\nghcr.io/tailscale-gateway/agent:v1@" + digestOf("a") + "\r\n"},
		"Empty":     {reason: "A list of nothing compares nothing.", list: "", want: "the list has no image with a digest"},
		"NoDigests": {reason: "Tags say nothing about digests.", list: "ghcr.io/tailscale-gateway/agent:v1\n", want: "the list has no image with a digest"},
		"OtherFile": {reason: "A file that is no list is refused.", list: "apiVersion: v1 and more\n", want: `line "apiVersion: v1 and more" names no image`},
		"BadDigest": {reason: "So is a digest that is cut off.", list: "ghcr.io/tailscale-gateway/agent@sha256:ab\n", want: `line "ghcr.io/tailscale-gateway/agent@sha256:ab" names no image`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := ParseImages(tc.list); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nParseImages(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSkew(t *testing.T) {
	cases := map[string]struct {
		reason string
		agent  string
		change func(*Facts, *Options)
		want   []Finding
	}{
		"Equal":      {reason: "One version is right.", agent: "agent:v0.1.0"},
		"Neighbours": {reason: "Neighbouring minor versions understand each other.", agent: "agent:v0.2.3"},
		"Digest":     {reason: "A digest is no version.", agent: "agent@" + digestOf("a")},
		"Apart": {
			reason: "Others do not.", agent: "agent:v0.3.0",
			want: []Finding{{
				Status: Warning, Summary: "Our parts are more than one minor version apart: configuration-tailscale-gateway v0.1.0 and agent v0.3.0",
				Impact: "Only neighbouring minor versions understand each other: docs/skew.md.", Fix: "upgrade the older one, one minor version after the other: docs/upgrading.md",
			}},
		},
		"Plugin": {
			reason: "The plugin is a part, too.", agent: "agent:v0.1.0", change: func(_ *Facts, o *Options) { o.Version = "v1.0.0" },
			want: []Finding{{
				Status: Warning, Summary: "Our parts are more than one minor version apart: agent v0.1.0 and plugin v1.0.0",
				Impact: "Only neighbouring minor versions understand each other: docs/skew.md.", Fix: "upgrade the older one, one minor version after the other: docs/upgrading.md",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, o := Facts{Packages: Answer[map[string]Package]{Value: map[string]Package{}}}, defaults()
			for _, p := range products.Packages(products.FlavourNamespaced) {
				f.Packages.Value[p.Name] = Package{Image: products.Image(p.Name, "v0.1.0")}
			}
			f.Images.Value = []Image{{Pod: "shop/web-0", Reference: "ghcr.io/tailscale-gateway/" + tc.agent}}
			if tc.change != nil {
				tc.change(&f, &o)
			}
			if diff := cmp.Diff(tc.want, images(f, o).findings); diff != "" {
				t.Errorf("%s\nimages(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
