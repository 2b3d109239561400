// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestTable fails when a mutant's line is no longer in its file: make test-mutants, which takes
// minutes, would find out late.
func TestTable(t *testing.T) {
	t.Chdir("../..")
	if err := run(t.Context(), "", true); err != nil {
		t.Error(err)
	}
}
