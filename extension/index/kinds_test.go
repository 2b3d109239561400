// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

func TestKinds(t *testing.T) {
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	var unknown []string
	for k, o := range parse.Kinds() {
		if _, _, err := s.ObjectKinds(o); err != nil && k != parse.KindTrafficPolicy {
			unknown = append(unknown, k)
		}
		if err := NewStore().Apply(Change{Object: o}); err != nil {
			t.Errorf("a store refuses a kind of parse.Kinds: %v", err)
		}
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		t.Errorf("the scheme does not know %v", unknown)
	}
}
