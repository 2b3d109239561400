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
	const minimal = "type: ingress\ntailnets: [{name: prod}]"

	cases := map[string]struct {
		reason string
		obj    string
		old    string
		want   string
	}{
		"Least": {
			reason: "The required fields are enough.",
			obj:    spec(minimal),
		},
		"All": {
			reason: "All settings other than those of pods are accepted.",
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
			reason: "The type is required.",
			obj:    spec("tailnets: [{name: prod}]"),
			want:   "spec.type: Required value",
		},
		"OtherType": {
			reason: "The type is immutable.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]"),
			old:    spec(minimal),
			want:   "is immutable; create another TailscaleProxyGroup instead",
		},
		"OtherTailnets": {
			reason: "Tailnets and zones can be changed.",
			obj:    spec("type: ingress\ntailnets: [{name: staging}]\nzones: [b]"),
			old:    spec(minimal + "\nzones: [a]"),
		},
		"NoTailnet": {
			reason: "A group needs a tailnet.",
			obj:    spec("type: ingress\ntailnets: []"),
			want:   "spec.tailnets",
		},
		"SeventeenTailnets": {
			reason: "The number of tailnets is limited.",
			obj:    spec("type: ingress\ntailnets: [" + strings.Repeat("{name: a}, ", 16) + "{name: a}]"),
			want:   "must have at most 16 items",
		},
		"Replicas": {
			reason: "Replicas cannot be negative.",
			obj:    spec(minimal + "\nreplicas: -1"),
			want:   "spec.replicas",
		},
		"Root": {
			reason: "The rules for proxies apply to a template.",
			obj:    spec(minimal + "\ntemplate: {proxy: {securityContext: {runAsUser: 0}}}"),
			want:   "spec.template.proxy.securityContext.runAsUser",
		},
		"Zone": {
			reason: "Zones must be valid label values.",
			obj:    spec(minimal + "\nzones: ['a b']"),
			want:   "spec.zones[0]",
		},
		"ZoneTwice": {
			reason: "The zone must be set in one place.",
			obj:    spec(minimal + "\nzones: [a]\ntemplate: {proxy: {nodeSelector: {topology.kubernetes.io/zone: b}}}"),
			want:   "remove topology.kubernetes.io/zone from template.proxy.nodeSelector",
		},
		"ZoneOfTemplate": {
			reason: "The nodeSelector of a group without zones may select a zone.",
			obj:    spec(minimal + "\ntemplate: {proxy: {nodeSelector: {topology.kubernetes.io/zone: b}}}"),
		},
		"OurLabel": {
			reason: "The prefix gateway.tailscale.com is reserved.",
			obj:    spec(minimal + "\ntemplate: {labels: {gateway.tailscale.com/proxy-group: other}}"),
			want:   "use another prefix",
		},
		"EgressOfIngress": {
			reason: "Ingress proxies do not carry traffic to the tailnet.",
			obj:    spec(minimal + "\ntemplate: {endpoints: [{name: db, tailscaleIP: 100.64.0.9, port: 5432}]}"),
			want:   "need type egress or bidirectional",
		},
		"UDPTarget": {
			reason: "Userspace networking supports only TCP.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]\ntemplate: {endpoints: [{name: dns, tailscaleIP: 100.64.0.9, port: 53, protocol: UDP}]}"),
			want:   "need template.proxy.networking Kernel",
		},
		"UDPPort": {
			reason: "Userspace networking supports only TCP.",
			obj:    spec("type: egress\ntailnets: [{name: prod}]\ntemplate: {ports: [{name: dns, port: 53, protocol: UDP}]}"),
			want:   "template.ports with protocol UDP",
		},
		"Clients": {
			reason: "A setting must not be ignored silently.",
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

// TestTailscaleProxyGroupTemplate checks which fields of a proxy a template has.
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
