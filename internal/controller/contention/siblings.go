// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"iter"
)

// Siblings returns the items that may be for the same tailnet as self, each with the contender that
// as builds from it. It omits self.
func Siblings[T any](self Contender, items []T, as func(*T) Contender) iter.Seq2[*T, Contender] {
	return func(yield func(*T, Contender) bool) {
		for i := range items {
			c := as(&items[i])
			if c.UID == self.UID || !SharesScope(self, c) {
				continue
			}
			if !yield(&items[i], c) {
				return
			}
		}
	}
}

// Tailnet returns the domain of the tailnet, or fallback if the API does not report it. The domain
// only helps to find objects that reach the same tailnet through another config, so a credential
// that may not list devices works without it.
func Tailnet(ctx context.Context, api interface {
	Domain(ctx context.Context) (string, error)
}, fallback string) string {
	if domain, err := api.Domain(ctx); err == nil && domain != "" {
		return domain
	}
	return fallback
}
