// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package network

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TestGuardInKernel writes the guard twice in a separate network namespace.
func TestGuardInKernel(t *testing.T) {
	runtime.LockOSThread()
	// The test does not unlock the thread, so that the thread and its namespace end with the test's
	// goroutine.
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("Unshare(...): %v", err)
	}
	for range 2 {
		if err := Guard(); err != nil {
			t.Fatalf("Guard(): %v", err)
		}
	}
	c, err := nftables.New()
	if err != nil {
		t.Fatalf("nftables.New(): %v", err)
	}
	table, chain, want := guard()
	rules, err := c.GetRules(table, chain)
	if err != nil {
		t.Fatalf("GetRules(...): %v", err)
	}
	if len(rules) != 1 {
		t.Fatalf("There are %d rules, want 1 after the guard was written repeatedly", len(rules))
	}
	if diff := cmp.Diff(want.Exprs, rules[0].Exprs); diff != "" {
		t.Errorf("The kernel must have the rule that was written: -want, +got:\n%s", diff)
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		t.Fatalf("ListChains(...): %v", err)
	}
	if len(chains) != 1 || chains[0].Hooknum == nil || *chains[0].Hooknum != *nftables.ChainHookForward {
		t.Errorf("There must be one chain, of forwarded packets, got %v", chains)
	}
	if _, ok := rules[0].Exprs[len(rules[0].Exprs)-1].(*expr.Verdict); !ok {
		t.Error("The rule must end in a verdict")
	}
}
