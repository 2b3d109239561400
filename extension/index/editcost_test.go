// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tenantObjects returns the objects of everything, in namespaces of a tenant. Its routes attach to Gateways
// that all tenants share and to the tenant's Gateways.
func tenantObjects(t *testing.T, tenant int) []client.Object {
	t.Helper()
	var out []client.Object
	for _, manifest := range everything() {
		manifest = strings.NewReplacer("namespace: other", fmt.Sprintf("namespace: other%d", tenant), "namespace: shop", fmt.Sprintf("namespace: shop%d", tenant)).Replace(manifest)
		for _, o := range decode(t, manifest) {
			if n := o.GetNamespace(); n == "shop" || n == "infra" {
				o.SetNamespace(fmt.Sprintf("shop%d", tenant))
			}
			out = append(out, o)
		}
	}
	return out
}

// TestEditCost checks that an edit of a tenant's object of any kind costs for what is built from it, not
// for the objects of all tenants.
func TestEditCost(t *testing.T) {
	costs := func(tenants int) map[string]float64 {
		s := NewStore()
		apply(t, s, false, gatewayOf("gw"), gatewayOf("gw2"))
		var first []client.Object
		for i := range tenants {
			objects := tenantObjects(t, i)
			if i == 0 {
				first = objects
			}
			for _, o := range objects {
				if err := applyChanges(s, Change{Object: o}); err != nil {
					t.Fatal(err)
				}
			}
		}
		out := map[string]float64{}
		for _, o := range first {
			out[fmt.Sprintf("%T %s", o, o.GetName())] = testing.AllocsPerRun(3, func() {
				for _, deleted := range []bool{true, false} {
					if err := applyChanges(s, Change{Object: o, Deleted: deleted}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
		return out
	}
	few, many := costs(10), costs(200)
	for name, n := range many {
		if n > 1.1*few[name]+20 {
			t.Errorf("An edit of %s needs %.0f allocations among 200 tenants, want about the %.0f among 10", name, n, few[name])
		}
	}
}

// TestSharedPods checks that targets which name the same Service find its pods once for an edit.
func TestSharedPods(t *testing.T) {
	const targets, pods = 16, 900
	cost := func(services int) uint64 {
		s := NewStore()
		apply(t, s, false, gatewayOf("gw"))
		refs := make([]string, targets)
		for i := range targets {
			name := fmt.Sprintf("name: t%d-0, port", i)
			for _, manifest := range largeTarget("shop", i, pods) {
				apply(t, s, false, strings.ReplaceAll(manifest, name, fmt.Sprintf("name: t%d-0, port", i%services)))
			}
			refs[i] = fmt.Sprintf("{group: gateway.tailscale.com, kind: TailscaleServices, name: t%d}", i)
		}
		policy := Change{Object: decode(t, fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: p, namespace: shop}\nspec: {targetRefs: [%s], validation: {wellKnownCACertificates: System, hostname: web.example.com}}", strings.Join(refs, ", ")))[0]}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		if err := applyChanges(s, policy); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&end)
		return end.TotalAlloc - start.TotalAlloc
	}
	if shared, separate := cost(1), cost(targets); shared > separate*7/10 {
		t.Errorf("A policy of %d targets with one Service needs %d bytes, want at most 0.7 of the %d bytes for targets with a Service each", targets, shared, separate)
	}
}
