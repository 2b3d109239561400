// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTailscaleProxyGroupSchema(t *testing.T) {
	spec := func(lines string) string {
		return "metadata: {name: edge}\nspec:\n  " + strings.ReplaceAll(lines, "\n", "\n  ")
	}
	const least = "type: ingress\ntailnets: [{name: prod}]"

	cases := map[string]struct {
		reason string
		obj    string
		old    string
		want   string
	}{
		"Least": {
			reason: "What must be said is enough.",
			obj:    spec(least),
		},
		"All": {
			reason: "Everything that may be set beside the pods.",
			obj: spec(`type: bidirectional
tailnets: [{name: prod}, {name: staging, replicas: 0}]
replicas: 3
zones: [eu-1a, Rack.1_b]
template:
  labels: {team: edge}
  tags: ["tag:edge"]
  proxy: {networking: Kernel, nodeSelector: {disk: ssd}, networkPolicy: {}}
  ports: [{name: dns, port: 53, protocol: UDP}]
  endpoints:
  - {name: db, tailscaleFQDN: db.example.ts.net, port: 5432, clients: [{podSelector: {}}]}`),
		},
		"NoType": {
			reason: "Which way traffic goes must be said.",
			obj:    spec("tailnets: [{name: prod}]"),
			want:   "spec.type: Required value",
		},
		"OtherType": {
			reason: "Proxies of another type would be other proxies.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]"),
			old:    spec(least),
			want:   "is immutable; make another TailscaleProxyGroup instead",
		},
		"OtherTailnets": {
			reason: "Tailnets and zones come and go.",
			obj:    spec("type: ingress\ntailnets: [{name: staging}]\nzones: [b]"),
			old:    spec(least + "\nzones: [a]"),
		},
		"NoTailnet": {
			reason: "Without a tailnet there is nothing to join.",
			obj:    spec("type: ingress\ntailnets: []"),
			want:   "spec.tailnets",
		},
		"SeventeenTailnets": {
			reason: "A group has bounds.",
			obj:    spec("type: ingress\ntailnets: [" + strings.Repeat("{name: a}, ", 16) + "{name: a}]"),
			want:   "must have at most 16 items",
		},
		"Replicas": {
			reason: "Fewer than none cannot be.",
			obj:    spec(least + "\nreplicas: -1"),
			want:   "spec.replicas",
		},
		"Root": {
			reason: "Rules of a proxy hold in a template.",
			obj:    spec(least + "\ntemplate: {proxy: {securityContext: {runAsUser: 0}}}"),
			want:   "spec.template.proxy.securityContext.runAsUser",
		},
		"Zone": {
			reason: "Else no node could have the label.",
			obj:    spec(least + "\nzones: ['a b']"),
			want:   "spec.zones[0]",
		},
		"ZoneTwice": {
			reason: "Who pins the pods must be clear.",
			obj:    spec(least + "\nzones: [a]\ntemplate: {proxy: {nodeSelector: {topology.kubernetes.io/zone: b}}}"),
			want:   "remove topology.kubernetes.io/zone from template.proxy.nodeSelector",
		},
		"ZoneOfTemplate": {
			reason: "A group without zones may be pinned to one.",
			obj:    spec(least + "\ntemplate: {proxy: {nodeSelector: {topology.kubernetes.io/zone: b}}}"),
		},
		"OurLabel": {
			reason: "Our prefix is ours.",
			obj:    spec(least + "\ntemplate: {labels: {gateway.tailscale.com/proxy-group: other}}"),
			want:   "use a prefix of your own",
		},
		"EgressOfIngress": {
			reason: "No proxy would carry the traffic.",
			obj:    spec(least + "\ntemplate: {endpoints: [{name: db, tailscaleIP: 100.64.0.9, port: 5432}]}"),
			want:   "need type egress or bidirectional",
		},
		"UDPTarget": {
			reason: "Userspace networking carries TCP.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]\ntemplate: {endpoints: [{name: dns, tailscaleIP: 100.64.0.9, port: 53, protocol: UDP}]}"),
			want:   "need template.proxy.networking Kernel",
		},
		"UDPPort": {
			reason: "Userspace networking carries TCP.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]\ntemplate: {ports: [{name: dns, port: 53, protocol: UDP}]}"),
			want:   "template.ports with protocol UDP",
		},
		"Clients": {
			reason: "What is asked for must not be ignored.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]\ntemplate: {proxy: {networkPolicy: {enabled: false}}, endpoints: [{name: db, tailscaleIP: 100.64.0.9, port: 1, clients: [{podSelector: {}}]}]}"),
			want:   "need template.proxy.networkPolicy.enabled",
		},
	}
	c := load(t, "tailscaleproxygroups")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, tc.obj), parse(t, tc.old)), tc.want)
		})
	}
}

// TestTailscaleProxyGroupTemplate has of a proxy what is not the group's to say.
func TestTailscaleProxyGroupTemplate(t *testing.T) {
	s := load(t, "tailscaleproxygroups")
	o := parse(t, "spec: {type: ingress, tailnets: [{name: prod}], template: {proxy: {}}}")
	if errs := s.validate(t, o, nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := map[string]any{
		"type":     "ingress",
		"tailnets": []any{map[string]any{"name": "prod"}},
		"replicas": int64(2),
		"template": map[string]any{"proxy": map[string]any{"networking": "Userspace", "forwarding": "InitContainer"}},
	}
	if diff := cmp.Diff(want, o["spec"]); diff != "" {
		t.Errorf("defaults: -want, +got:\n%s", diff)
	}
}
