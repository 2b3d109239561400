// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import "testing"

// TestReadWithoutLock checks that an object is parsed while others change the store: a tenant may
// write a policy that takes long to parse.
func TestReadWithoutLock(t *testing.T) {
	s := NewStore()
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.Read(Change{Object: decode(t, policyOf("staff", `{name: a, actions: [{type: Deny}], matches: [{path: {value: /a}}]}`))[0]})
	if read.read.policy == nil {
		t.Error("Read(...): no policy")
	}
}
