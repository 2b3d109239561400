// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkApply measures a change of an object with 5000 routes, both when all routes name
// one target and when each route names a different one.
func BenchmarkApply(b *testing.B) {
	for _, distinct := range []bool{false, true} {
		s := NewStore()
		sub := s.Subscribe()
		var cs []Change
		for i := range 5000 {
			n := "web"
			if distinct {
				n = fmt.Sprintf("web-%d", i)
			}
			route := strings.NewReplacer("{name: web,", fmt.Sprintf("{name: r-%d,", i), "name: web, port", "name: "+n+", port").Replace(routeToWeb)
			cs = append(cs, Change{Object: decode(b, route)[0]})
			if i == 0 || distinct {
				app := fmt.Sprintf("app-%d", i)
				for _, o := range decode(b, strings.NewReplacer("{name: web}", "{name: "+n+"}", "name: app", "name: "+app).Replace(servicesWeb),
					strings.Replace(serviceApp, "name: app", "name: "+app, 1), strings.ReplaceAll(sliceApp, "app", app)) {
					cs = append(cs, Change{Object: o})
				}
			}
		}
		if err := s.Apply(cs...); err != nil {
			b.Fatal(err)
		}
		two := func(m string) []client.Object {
			m = strings.ReplaceAll(m, "app", "app-0")
			return append(decode(b, m), decode(b, strings.NewReplacer("10.0.0.2", "10.0.0.9", "selector: {}", "selector: {}\n  loadBalancing: {failoverPolicy: {healthThreshold: 50}}").Replace(m))...)
		}
		web := servicesWeb
		if distinct {
			web = strings.Replace(servicesWeb, "name: web", "name: web-0", 1)
		}
		route := strings.Replace(routeToWeb, "{name: web,", "{name: r-1,", 1)
		changes := map[string][]client.Object{
			"EndpointSlice":     two(sliceApp),
			"TailscaleServices": two(web),
			"HTTPRoute":         append(decode(b, route), decode(b, strings.Replace(route, "port: 80", "port: 81", 1))...),
		}
		for _, n := range slices.Sorted(maps.Keys(changes)) {
			b.Run(fmt.Sprintf("distinct=%v/%s", distinct, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if err := s.Apply(Change{Object: changes[n][i%2]}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "extension.index_update_ms")
			})
			sub.Take()
		}
	}
}
