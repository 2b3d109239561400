// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import "slices"

// Sorted returns a sorted copy without duplicates, as plain strings. The API ignores order and
// duplicates.
func Sorted[S ~string](values []S) []string {
	out := make([]string, 0, len(values))
	for _, s := range values {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
