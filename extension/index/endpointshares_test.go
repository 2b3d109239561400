// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// largeTarget returns a target with so many pods for each of its Services, and a route to it. Objects
// with greater numbers are newer.
func largeTarget(namespace string, n int, pods ...int) []string {
	backends := make([]string, 0, len(pods))
	var out []string
	for i, count := range pods {
		s := fmt.Sprintf("t%d-%d", n, i)
		backends = append(backends, fmt.Sprintf("{name: %s, port: 80}", s))
		out = append(out, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s}\nspec: {ports: [{port: 80}]}", s, namespace))
		for first := 0; first < count; first += 1000 {
			endpoints := make([]string, 0, 1000)
			for j := first; j < min(first+1000, count); j++ {
				endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.%d.%d.%d], zone: z%d, conditions: {}}", n, j/250, 1+j%250, j%100))
			}
			out = append(out, fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-%d, namespace: %s, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\nports: [{name: \"\", port: 80, protocol: TCP}]\nendpoints: [%s]",
				s, first, namespace, s, strings.Join(endpoints, ", ")))
		}
	}
	return append(out,
		fmt.Sprintf("apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleServices\nmetadata: {name: t%d, namespace: %s, creationTimestamp: \"2026-01-01T00:00:%02dZ\"}\nspec: {selector: {}, vipService: {ports: [\"tcp:80\"]}, backends: [%s]}", n, namespace, n, strings.Join(backends, ", ")),
		fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: t%d, namespace: %s}\nspec:\n  parentRefs: [{name: gw, namespace: infra}]\n  rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: t%d, port: 80}]}]", n, namespace, n))
}

// TestNamespaceEndpoints checks how many endpoints the targets of a namespace have, whatever the order
// of changes, and that the targets say what is left out.
func TestNamespaceEndpoints(t *testing.T) {
	const most = limits.NamespaceEndpoints
	key := func(namespace string, n int) ir.TargetKey {
		return ir.TargetKey{Kind: ir.TargetServices, Namespace: namespace, Name: fmt.Sprintf("t%d", n), Port: 80, Protocol: ir.ProtocolHTTP}
	}
	cases := map[string]struct {
		reason string
		pods   [][]int
		// want are the numbers of endpoints, and of those to probe, of each backend.
		want [][]int
	}{
		"Fine":   {reason: "Targets within the limit should have all.", pods: [][]int{{100}, {most - 100}}, want: [][]int{{100}, {most - 100}}},
		"Newest": {reason: "The newest targets should have what the others leave.", pods: [][]int{{most - 300}, {200}, {200}, {1}}, want: [][]int{{most - 300}, {200}, {100}, {0}}},
		"One":    {reason: "The backends of a target should have equal parts of its share, unless they need less.", pods: [][]int{{most, 10, most}}, want: [][]int{{(most - 10) / 2, 10, (most - 10) / 2}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			others := largeTarget("shop", 0, 3)
			apply(t, s, false, others...)
			var all []string
			// The newest come first.
			for i := len(tc.pods) - 1; i >= 0; i-- {
				all = append(all, largeTarget("hostile", i, tc.pods[i]...)...)
			}
			apply(t, s, false, all...)
			count := func(k ir.TargetKey, backends int) []int {
				out, probed := make([]int, backends), make([]int, backends)
				target := s.Snapshot().Target(k)
				index := func(source string) (i int) {
					_, _ = fmt.Sscanf(source[strings.LastIndex(source, "-")+1:], "%d", &i)
					return i
				}
				for _, l := range target.Localities {
					out[index(l.Name)] += len(l.Endpoints)
				}
				for _, c := range target.Candidates {
					probed[index(c.Source)]++
				}
				if diff := cmp.Diff(out, probed); diff != "" {
					t.Errorf("%s\nthe same endpoints should be probed: -want, +got:\n%s", tc.reason, diff)
				}
				return out
			}
			for i, want := range tc.want {
				k := key("hostile", i)
				if diff := cmp.Diff(want, count(k, len(want))); diff != "" {
					t.Errorf("%s\ntarget %d: -want, +got:\n%s", tc.reason, i, diff)
				}
				target, all := s.Snapshot().Target(k), cmp.Equal(want, tc.pods[i])
				switch message := target.Problem + strings.Join(target.Refused, ""); {
				case all && message != "":
					t.Errorf("%s\ntarget %d: want no message, got %q", tc.reason, i, message)
				case !all && !strings.Contains(message, "are left out"):
					t.Errorf("%s\ntarget %d should say what is left out, got %q", tc.reason, i, message)
				}
			}
			if got := count(key("shop", 0), 1); got[0] != 3 {
				t.Errorf("%s\nanother namespace should keep its endpoints, got %v", tc.reason, got)
			}
			apply(t, s, true, all[len(all)-len(largeTarget("hostile", 0, tc.pods[0]...)):]...)
			for i := 1; i < len(tc.want); i++ {
				if diff := cmp.Diff(tc.pods[i], count(key("hostile", i), len(tc.pods[i]))); diff != "" {
					t.Errorf("%s\ntarget %d after the oldest is gone: -want, +got:\n%s", tc.reason, i, diff)
				}
			}
			apply(t, s, true, append(all, others...)...)
			if n := len(s.objects.shares.namespaces) + len(s.objects.shares.most) + len(s.objects.created); n > 0 {
				t.Errorf("%d entries stay after all objects are gone", n)
			}
		})
	}
}

// TestEndpointSharesOrder checks that targets are sorted only in a namespace beyond the limit, and again
// only after targets have come or gone: each change of an endpoint leads to a decision.
func TestEndpointSharesOrder(t *testing.T) {
	key := func(n int) ir.TargetKey {
		return ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: fmt.Sprintf("t%d", n)}
	}
	s := newEndpointShares()
	steps := []struct {
		reason    string
		target    int
		endpoints int
		changed   []ir.TargetKey
		sorts     bool
	}{
		{reason: "A namespace within the limit needs no order.", target: 0, endpoints: limits.NamespaceEndpoints},
		{reason: "A target beyond the limit should get what is left.", target: 1, endpoints: 5, changed: []ir.TargetKey{key(1)}, sorts: true},
		{reason: "Another number of endpoints leaves the order.", target: 0, endpoints: limits.NamespaceEndpoints - 2, changed: []ir.TargetKey{key(1)}},
		{reason: "A new target needs another order.", target: 2, endpoints: 1, changed: []ir.TargetKey{key(2)}, sorts: true},
		{reason: "The last decision should give all targets all.", target: 0, endpoints: 1, changed: []ir.TargetKey{key(1), key(2)}},
	}
	for _, step := range steps {
		s.set(key(step.target), endpointSize{created: time.Unix(int64(step.target), 0), endpoints: step.endpoints})
		sorts := s.namespaces["shop"].order == nil
		got := s.settle()
		sorts = sorts && s.namespaces["shop"].order != nil
		if diff := cmp.Diff(step.changed, got); diff != "" || sorts != step.sorts {
			t.Errorf("%s\nsettle(): sorts: %t, want %t; -want, +got:\n%s", step.reason, sorts, step.sorts, diff)
		}
	}
}
