// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"strings"
	"testing"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// TestSchema checks that the API server rejects bad input with the field's path and the rule.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, k := range kindCases() {
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			e := bareEnv(t)
			good := e.subject(k)
			if err := shared.kube.Create(t.Context(), good, client.DryRunAll); err != nil {
				t.Fatalf("New's object is rejected: %v", err)
			}
			// Rules on updates need an existing object, which no controller changes.
			xpmeta.AddAnnotations(good, map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"})
			e.create(good)
			for _, b := range k.Bad {
				t.Run(b.Name, func(t *testing.T) {
					var err error
					if b.OnUpdate {
						bad := good.DeepCopyObject().(resource.ModernManaged)
						// The controller still writes the paused condition.
						err = retry.RetryOnConflict(conflicts, func() error {
							if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(good), bad); err != nil {
								return err
							}
							b.Break(bad)
							return shared.kube.Update(t.Context(), bad, client.DryRunAll)
						})
					} else {
						bad := e.subject(k)
						bad.SetName("bad")
						b.Break(bad)
						err = shared.kube.Create(t.Context(), bad, client.DryRunAll)
					}
					if err == nil {
						t.Fatal("the input was accepted")
					}
					for _, want := range b.Want {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("the error does not contain %q: %v", want, err)
						}
					}
				})
			}
		})
	}
}
