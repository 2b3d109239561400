// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import "context"

// None is the issuer of a pod that does not request certificates.
type None struct{}

// Set does nothing.
func (None) Set(context.Context, int, []string) error { return nil }

// Grant does nothing.
func (None) Grant([]string) {}

// Statuses returns nil.
func (None) Statuses() map[string]Status { return nil }

// Again does nothing.
func (None) Again(context.Context, string) error { return nil }
