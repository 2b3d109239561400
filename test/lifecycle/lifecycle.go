// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle holds the lives of objects that are safe in any tailnet: what they add has names
// with a prefix, permits nothing to anybody, and is gone with them. test/integration runs them with
// the provider, an API server and the simulator; cluster/acceptance runs the same controllers against a
// real tailnet.
//
// Kinds that are not here, and why:
//   - Contacts, DNS, LogstreamConfiguration and Tailnet change settings of the whole tailnet.
//   - PostureIntegration makes Tailscale call a server of another company.
//   - FederatedIdentity and OAuthClient create credentials, which have rights until they are gone.
//   - Device and Machine need a node and, for the latter, its pod. A Device creates nothing, removes
//     attributes only when its spec changes, and reads them every ten minutes. The rows of
//     cluster/acceptance about posture and hosts make these calls.
//   - Discovery changes nothing.
package lifecycle

import (
	"context"
	"slices"

	"github.com/google/go-cmp/cmp"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Names are what an object may use in a tailnet.
type Names struct {
	// Prefix begins all names: a DNS label of at most 29 characters.
	Prefix string

	// Tags that exist and that the credential owns. New uses the first one, and Update all.
	Tags []v1alpha1.Tag
}

// A Case is the life of an object of a kind.
type Case[T resource.ModernManaged] struct {
	// New returns the smallest object that becomes Ready, with its spec alone.
	New func() T

	// Update changes mg's spec, so that Check fails until the change reaches the tailnet.
	Update func(mg T)

	// Check returns an error unless the tailnet matches mg's spec.
	Check func(ctx context.Context, tailnet *tsclient.Client, mg T) error

	// Drift changes or deletes by hand what mg manages, so that Check fails.
	Drift func(ctx context.Context, tailnet *tsclient.Client, mg T) error
}

// Differ returns an error unless the actual value is the desired one, for Check.
func Differ(want, actual any) error {
	if d := cmp.Diff(want, actual); d != "" {
		return errors.Errorf("-want, +got:\n%s", d)
	}
	return nil
}

// Texts returns sorted strings of any string type.
func Texts[S ~string](items []S) []string {
	out := make([]string, 0, len(items))
	for _, s := range items {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return out
}
