// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/multicluster"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// recordService returns the service with the record of a cluster that exports a Service web of the namespace shop.
func recordService(t *testing.T, cluster string, change func(*registry.Record)) tailscale.Service {
	t.Helper()
	r := registry.Record{
		Cluster: cluster, ClusterSet: "prod", Operator: "shop/clusterset-web",
		Service: multicluster.ServiceName("prod", "shop", "web"),
		Export:  &v1alpha1.ExportedService{Name: "web", Ports: []v1alpha1.ExportedPort{{Name: "http", Port: 80}}},
	}
	change(&r)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return tailscale.Service{Name: registry.RecordName(r.Service, cluster), Annotations: map[string]string{
		meta.AnnotationRecord: string(b), meta.AnnotationSchemaVersion: meta.SchemaVersion, meta.AnnotationSharedService: r.Service,
	}}
}

// flat returns exports a line each.
func flat(exports map[string]map[string][]multicluster.Exporter) []string {
	var out []string
	for _, namespace := range slices.Sorted(maps.Keys(exports)) {
		for _, name := range slices.Sorted(maps.Keys(exports[namespace])) {
			for _, e := range exports[namespace][name] {
				out = append(out, fmt.Sprintf("%s/%s %s %d", namespace, name, e.Cluster, len(e.Ports)))
			}
		}
	}
	return out
}

func TestExportsOf(t *testing.T) {
	m := multicluster.Membership{Cluster: "one", Set: "prod"}
	cases := map[string]struct {
		reason string
		change func(*registry.Record)
		want   []string
	}{
		"Export":    {reason: "A record with an export of the set counts.", change: func(*registry.Record) {}, want: []string{"shop/web two 1"}},
		"NoExport":  {reason: "Not every shared service is exported.", change: func(r *registry.Record) { r.Export = nil }},
		"OtherSet":  {reason: "A record of another set does not count.", change: func(r *registry.Record) { r.ClusterSet = "staging" }},
		"Namespace": {reason: "A record of another namespace does not have the name of this one.", change: func(r *registry.Record) { r.Operator = "evil/clusterset-web" }},
		"Object":    {reason: "Only the object of a ServiceExport exports.", change: func(r *registry.Record) { r.Operator = "shop/web" }},
		"Name":      {reason: "A record is for the Service in its name.", change: func(r *registry.Record) { r.Export.Name = "db" }},
		"Invalid":   {reason: "A name that no Service can have does not count.", change: func(r *registry.Record) { r.Export.Name = "web-" }},
		"Ports":     {reason: "Ports that no Service can have are left out.", change: func(r *registry.Record) { r.Export.Ports[0].Port = 0 }, want: []string{"shop/web two 0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := exportsOf([]tailscale.Service{recordService(t, "two", tc.change)}, m)
			if diff := cmp.Diff(tc.want, flat(got)); diff != "" {
				t.Errorf("\n%s\nexportsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeepUnreadable(t *testing.T) {
	m := multicluster.Membership{Cluster: "one", Set: "prod"}
	whole := recordService(t, "two", func(*registry.Record) {})
	last := exportsOf([]tailscale.Service{whole}, m)
	broken := tailscale.Service{Name: whole.Name}
	cases := map[string]struct {
		reason   string
		services []tailscale.Service
		want     []string
	}{
		"Readable":   {reason: "A record that can be read counts once.", services: []tailscale.Service{whole}, want: []string{"shop/web two 1"}},
		"Unreadable": {reason: "A record that has lost its annotations is unknown, and the last export stays.", services: []tailscale.Service{broken}, want: []string{"shop/web two 1"}},
		"Gone":       {reason: "A record that is gone exports nothing."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := exportsOf(tc.services, m)
			keepUnreadable(got, last, tc.services, m)
			if diff := cmp.Diff(tc.want, flat(got)); diff != "" {
				t.Errorf("\n%s\nkeepUnreadable(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
