// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// TestImports checks that the agent imports nothing that would make each proxy pod larger for no use, not
// even indirectly.
func TestImports(t *testing.T) {
	i := slices.IndexFunc(products.All(), func(p products.Product) bool { return p.Name == products.Agent })
	agent := products.All()[i]
	out, err := exec.CommandContext(t.Context(), "go", "list", "-tags", strings.Join(agent.Tags, ","), "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason    string
		forbidden []string
		except    []string
	}{
		"Kinds": {
			reason:    "The agent needs Secrets and ConfigMaps of Kubernetes' kinds. The types of a NetworkPolicy are part of apis/gateway.",
			forbidden: []string{"k8s.io/api", "k8s.io/client-go/kubernetes", "k8s.io/client-go/applyconfigurations", "k8s.io/client-go/informers"},
			except:    []string{"k8s.io/api/core/v1", "k8s.io/api/networking/v1"},
		},
		"Discovery": {
			reason: "The agent knows the paths of its kinds, and validates nothing by a schema.",
			forbidden: []string{
				"k8s.io/client-go/discovery", "k8s.io/client-go/openapi", "k8s.io/kube-openapi", "github.com/google/gnostic-models",
				"k8s.io/apimachinery/pkg/util/managedfields",
			},
			except: []string{"k8s.io/kube-openapi/pkg/util"},
		},
		"Controllers": {
			reason:    "The agent has no controllers. The packages for its logs import nothing else of these modules.",
			forbidden: []string{"sigs.k8s.io/controller-runtime", "github.com/crossplane/crossplane-runtime"},
			except:    []string{"sigs.k8s.io/controller-runtime/pkg/log", "sigs.k8s.io/controller-runtime/pkg/log/zap", "github.com/crossplane/crossplane-runtime/v2/pkg/logging"},
		},
		"Pages": {
			reason:    "The agent serves no pages.",
			forbidden: []string{"html/template", "golang.org/x/net/trace"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, p := range strings.Fields(string(out)) {
				if slices.Contains(tc.except, p) {
					continue
				}
				for f := p; f != "."; f = path.Dir(f) {
					if slices.Contains(tc.forbidden, f) {
						t.Errorf("the agent depends on %s: %s", p, tc.reason)
					}
				}
			}
		})
	}
}
