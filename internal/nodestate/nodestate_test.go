// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		keys   string
		want   Completeness
	}{
		"Empty":         {reason: "A new Secret has nothing.", want: None},
		"Containerboot": {reason: "The keys of containerboot are not part of the identity.", keys: "device_id device_fqdn tailscale_capver", want: None},
		"Whole":         {reason: "All four parts are an identity.", keys: "_machinekey _profiles _current-profile profile-1a2b device_id", want: Whole},
		"NoMachineKey":  {reason: "The identity needs a machine key.", keys: "_profiles _current-profile profile-1a2b", want: Partial},
		"NoProfile":     {reason: "The identity needs a profile.", keys: "_machinekey _profiles _current-profile", want: Partial},
		"NoCurrent":     {reason: "The identity needs the current profile.", keys: "_machinekey _profiles profile-1a2b", want: Partial},
		"NoKnown":       {reason: "The identity needs the list of profiles.", keys: "_machinekey _current-profile profile-1a2b", want: Partial},
		"Joining":       {reason: "Tailscaled writes the machine key first.", keys: "_machinekey", want: Partial},
		"EmptyValue":    {reason: "A key with an empty value is missing.", keys: "_machinekey _profiles _current-profile profile-1a2b=", want: Partial},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for _, k := range strings.Fields(tc.keys) {
				k, empty := strings.CutSuffix(k, "=")
				if data[k] = []byte("x"); empty {
					data[k] = nil
				}
			}
			if got := Of(data); got != tc.want {
				t.Errorf("\n%s\nOf(...): want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
