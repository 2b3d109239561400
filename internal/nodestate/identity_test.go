// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"encoding/json"
	"testing"

	"tailscale.com/types/key"
)

func TestIdentity(t *testing.T) {
	node := key.NewNode()
	profile := func(config map[string]any) []byte {
		b, err := json.Marshal(map[string]any{"Config": config})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := profile(map[string]any{"NodeID": "nABC", "PrivateNodeKey": node})
	cases := map[string]struct {
		reason          string
		data            map[string][]byte
		wantID, wantKey string
	}{
		"Whole": {
			reason: "The current profile has the ID and the key.",
			data:   map[string][]byte{"_current-profile": []byte("profile-1"), "profile-1": whole},
			wantID: "nABC", wantKey: node.Public().String(),
		},
		"Claimed": {
			reason: "The pod's ID counts as the ID, and changes no key.",
			data:   map[string][]byte{"_current-profile": []byte("profile-1"), "profile-1": whole, "device_id": []byte("nOTHER")},
			wantID: "nOTHER", wantKey: node.Public().String(),
		},
		"OtherProfile": {
			reason: "Only the current profile counts.",
			data:   map[string][]byte{"_current-profile": []byte("profile-2"), "profile-1": whole},
		},
		"NoProfile": {
			reason: "Another entry of the Secret is no profile.",
			data:   map[string][]byte{"_current-profile": []byte("device_id"), "device_id": whole},
		},
		"NoKey": {
			reason: "A device without a key proves nothing.",
			data:   map[string][]byte{"_current-profile": []byte("profile-1"), "profile-1": profile(map[string]any{"NodeID": "nABC"})},
			wantID: "nABC",
		},
		"BadID": {
			reason: "An ID that would change the path of a request is none.",
			data:   map[string][]byte{"device_id": []byte("../acl")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NodeID(tc.data); got != tc.wantID {
				t.Errorf("\n%s\nNodeID(...): want %q, got %q", tc.reason, tc.wantID, got)
			}
			if got := NodeKey(tc.data); got != tc.wantKey {
				t.Errorf("\n%s\nNodeKey(...): want %q, got %q", tc.reason, tc.wantKey, got)
			}
		})
	}
}
