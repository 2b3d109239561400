// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodestate judges what tailscaled keeps in a state Secret. It is pure.
package nodestate

import (
	"strings"

	"tailscale.com/ipn"
)

// profilePrefix begins the keys of profiles (tailscale.com ipn/ipnlocal/profiles.go).
const profilePrefix = "profile-"

// A Completeness of a node's state.
type Completeness int

const (
	// None is a state that has nothing of an identity: the node has not joined.
	None Completeness = iota

	// Partial is a state that lacks some of what an identity takes. Tailscaled writes the
	// parts one by one, so one that is joining has it for a moment. One that starts with
	// it joins as another node, or not at all.
	Partial

	// Whole is a state with which a node starts as what it was.
	Whole
)

// Of returns how complete a state Secret's data are: as containerboot judges them before it
// ends, by the current profile, the known profiles, the machine key and a profile
// (tailscale.com cmd/containerboot/kube.go, hasConsistentState).
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
