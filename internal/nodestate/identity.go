// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"encoding/json"
	"regexp"
	"strings"

	"tailscale.com/ipn"
	"tailscale.com/kube/kubetypes"
	"tailscale.com/types/key"
)

// validNodeID matches node IDs. Other texts could change the path of a request.
var validNodeID = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// NodeID returns the node ID of the device whose state a Secret's data holds, or "". Containerboot
// writes the ID some time after tailscaled has written it in its profile. A pod may write any ID.
func NodeID(data map[string][]byte) string {
	if id := string(data[kubetypes.KeyDeviceID]); validNodeID.MatchString(id) {
		return id
	}
	var prefs struct {
		Config struct{ NodeID string }
	}
	if profile(data, &prefs) && validNodeID.MatchString(prefs.Config.NodeID) {
		return prefs.Config.NodeID
	}
	return ""
}

// NodeKey returns the public key of the node whose private key a Secret's data holds, in the form
// of Tailscale's API, or "". The key proves that the data is the state of the device with this key.
// A node ID proves nothing.
func NodeKey(data map[string][]byte) string {
	var prefs struct {
		Config struct{ PrivateNodeKey key.NodePrivate }
	}
	if !profile(data, &prefs) || prefs.Config.PrivateNodeKey.IsZero() {
		return ""
	}
	return prefs.Config.PrivateNodeKey.Public().String()
}

// profile decodes the current profile (tailscale.com ipn.Prefs and types/persist.Persist), and
// reports whether there is one that can be read.
func profile(data map[string][]byte, dst any) bool {
	name := string(data[string(ipn.CurrentProfileStateKey)])
	return strings.HasPrefix(name, profilePrefix) && json.Unmarshal(data[name], dst) == nil
}
