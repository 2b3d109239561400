// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodestate evaluates the state of tailscaled in a state Secret. It is pure.
package nodestate

import (
	"strings"

	"tailscale.com/ipn"
)

// profilePrefix is the prefix of profile keys (tailscale.com ipn/ipnlocal/profiles.go).
const profilePrefix = "profile-"

// A Completeness is the completeness of a node's state.
type Completeness int

const (
	// None means that the state has no part of an identity: the node has not joined.
	None Completeness = iota

	// Partial means that the state lacks a part of the identity. Tailscaled writes the parts
	// one by one, so the state of a joining node is partial for a moment. A node that starts
	// with a partial state joins as another node, or not at all.
	Partial

	// Whole means that a node starts with its previous identity.
	Whole
)

// Of returns the completeness of a state Secret's data. Like containerboot before it exits, it
// checks the current profile, the known profiles, the machine key and a profile (tailscale.com
// cmd/containerboot/kube.go, hasConsistentState).
func Of(data map[string][]byte) Completeness {
	parts := 0
	for _, k := range []ipn.StateKey{ipn.CurrentProfileStateKey, ipn.KnownProfilesStateKey, ipn.MachineKeyStateKey} {
		if len(data[string(k)]) > 0 {
			parts++
		}
	}
	for k, v := range data {
		if strings.HasPrefix(k, profilePrefix) && len(v) > 0 {
			parts++
			break
		}
	}
	switch parts {
	case 0:
		return None
	case 4:
		return Whole
	}
	return Partial
}
