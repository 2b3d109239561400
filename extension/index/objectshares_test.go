// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// TestObjectShares checks how many Secrets and ConfigMaps of each namespace are admitted.
func TestObjectShares(t *testing.T) {
	t.Run("Secrets", func(t *testing.T) { testShares(t, limits.NamespaceSecrets, limits.Secrets) })
	t.Run("ConfigMaps", func(t *testing.T) { testShares(t, limits.NamespaceConfigMaps, limits.ConfigMaps) })
}

func testShares(t *testing.T, perNamespace, all int) {
	t.Helper()
	cases := map[string]struct {
		reason string
		// wanted are the numbers of names by namespace. Each policy names 16.
		wanted map[string]int
		want   map[string]int
	}{
		"Hostile": {
			reason: "A namespace beyond its limit should keep its oldest, and take none from others.",
			wanted: map[string]int{"hostile": 2000, "shop": 3},
			want:   map[string]int{"hostile": perNamespace, "shop": 3},
		},
		"All": {
			reason: "Beyond the limit in all, the limit of all namespaces should fall, and namespaces below should keep theirs.",
			wanted: func() map[string]int {
				out := map[string]int{"shop": 3}
				for i := range 2 * all / perNamespace {
					out[fmt.Sprintf("hostile-%d", i)] = perNamespace
				}
				return out
			}(),
			want: func() map[string]int {
				out := map[string]int{"shop": 3}
				for i := range 2 * all / perNamespace {
					// (all - 3) / (2 * all / perNamespace), rounded down.
					out[fmt.Sprintf("hostile-%d", i)] = perNamespace/2 - 1
				}
				return out
			}(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newObjectShares(perNamespace, all, make(chan struct{}, 1))
			want := func(namespace string, created, first, last int) {
				w := objectWant{created: time.Unix(int64(created), 0)}
				for i := first; i < last; i++ {
					w.names = append(w.names, types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(i)})
				}
				c := entry{section: policySection, NamespacedName: types.NamespacedName{Namespace: namespace, Name: strconv.Itoa(-created)}}
				s.set(c, w)
				// A state in between should leave no trace.
				s.settle()
			}
			for n, count := range tc.wanted {
				for i := (count - 1) / 16; i >= 0; i-- {
					want(n, i, 16*i, min(16*(i+1), count))
				}
			}
			got := map[string]int{}
			for n, share := range s.shares {
				got[n] = len(share.admitted)
				for i := range got[n] {
					if !s.admits(n, types.NamespacedName{Namespace: n, Name: strconv.Itoa(i)}) {
						t.Errorf("%s: number %d of an older policy is not admitted", n, i)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for n, count := range tc.wanted {
				for i := range (count-1)/16 + 1 {
					want(n, i, 0, 0)
				}
			}
			if len(s.wants)+len(s.shares) > 0 {
				t.Errorf("%d wants and %d shares stay after all policies are gone", len(s.wants), len(s.shares))
			}
		})
	}
}

// TestSharesChanged checks that the reader is notified whenever others are admitted, even if objects
// still name all of them.
func TestSharesChanged(t *testing.T) {
	changed := make(chan struct{}, 1)
	s := newObjectShares(2, 4, changed)
	set := func(object string, created int64, names ...string) {
		w := objectWant{created: time.Unix(created, 0)}
		for _, n := range names {
			w.names = append(w.names, name(n))
		}
		s.set(entry{section: policySection, NamespacedName: name(object)}, w)
		s.settle()
	}
	steps := []struct {
		reason  string
		action  func()
		changes bool
		want    []types.NamespacedName
	}{
		{reason: "A first name is admitted.", action: func() { set("a", 1, "x") }, changes: true, want: []types.NamespacedName{name("x")}},
		{reason: "The same again changes nothing.", action: func() { set("a", 1, "x") }, want: []types.NamespacedName{name("x")}},
		{reason: "The limit admits one of two.", action: func() { set("b", 2, "y", "z") }, changes: true, want: []types.NamespacedName{name("x"), name("y")}},
		{reason: "A newer object with an admitted name changes nothing.", action: func() { set("c", 3, "x") }, want: []types.NamespacedName{name("x"), name("y")}},
		{reason: "Without the oldest object the newest loses its name.", action: func() { set("a", 1) }, changes: true, want: []types.NamespacedName{name("y"), name("z")}},
		{reason: "The limit admits it again.", action: func() { set("b", 2) }, changes: true, want: []types.NamespacedName{name("x")}},
		{reason: "The last object is gone.", action: func() { set("c", 3) }, changes: true, want: []types.NamespacedName{}},
	}
	for _, step := range steps {
		step.action()
		got := false
		select {
		case <-changed:
			got = true
		default:
		}
		if got != step.changes {
			t.Errorf("%s\nnotified: %t, want %t", step.reason, got, step.changes)
		}
		if diff := cmp.Diff(step.want, admitted(s)); diff != "" {
			t.Errorf("%s\nadmitted: -want, +got:\n%s", step.reason, diff)
		}
	}
}

// TestTooManySecrets names more Secrets than a namespace may, and removes its oldest policy.
func TestTooManySecrets(t *testing.T) {
	s := NewStore()
	apply(t, s, false, routeToWeb)
	policy := func(i int) string {
		var rules []string
		for j := range 16 {
			rules = append(rules, strings.NewReplacer("name: a", fmt.Sprintf("name: r%d", j), "name: client", fmt.Sprintf("name: client-%d-%d", i, j)).Replace(presentsClient))
		}
		doc := policyOf(fmt.Sprintf("p%d", i), strings.Join(rules, ", "))
		return strings.Replace(doc, "metadata: {", fmt.Sprintf("metadata: {creationTimestamp: %q, ", time.Unix(int64(i), 0).UTC().Format(time.RFC3339)), 1)
	}
	const count = limits.NamespaceSecrets/16 + 1
	for i := count - 1; i >= 0; i-- {
		apply(t, s, false, policy(i))
	}
	if got := len(s.Secrets()); got != limits.NamespaceSecrets {
		t.Errorf("%d Secrets are read, want %d", got, limits.NamespaceSecrets)
	}
	reason := func(i int) string {
		return s.Snapshot().Edit().Policies.Get(name(fmt.Sprintf("p%d", i))).Rules[0].Certificate.Reason
	}
	for i := range count {
		want := ir.ReasonPending
		if i == count-1 {
			want = ir.ReasonTooManySecrets
		}
		if got := reason(i); got != want {
			t.Errorf("policy %d: want %q, got %q", i, want, got)
		}
	}
	apply(t, s, true, policy(0))
	if got := reason(count - 1); got != ir.ReasonPending {
		t.Errorf("after an older policy is gone: want %q, got %q", ir.ReasonPending, got)
	}
}
