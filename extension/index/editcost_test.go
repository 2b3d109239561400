// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
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
