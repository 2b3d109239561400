// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestReportUnverifiedListeners checks that the report follows ReferenceGrants as they come and
// go.
func TestReportUnverifiedListeners(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	hasListeners := func(want ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			r, err := w.report(ctx)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, r.Spec.ListenersWithoutIdentity); diff != "" {
				return errors.Errorf("listeners without verified identity: -want, +got:\n%s", diff)
			}
			return nil
		}
	}
	w.create(t, objects(t, identifies)...)
	w.waitFor(t, hasListeners("a", "z"))
	grant := objects(t, identityGrant)[0]
	grant.SetUID("")
	if err := w.kube.Create(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, hasListeners())
	if err := w.kube.Delete(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, hasListeners("a", "z"))
}
