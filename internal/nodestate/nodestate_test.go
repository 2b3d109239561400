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
		"Containerboot": {reason: "What containerboot writes is no identity.", keys: "device_id device_fqdn tailscale_capver", want: None},
		"Whole":         {reason: "All four parts are an identity.", keys: "_machinekey _profiles _current-profile profile-1a2b device_id", want: Whole},
		"NoMachineKey":  {reason: "Without its key the machine is another one.", keys: "_profiles _current-profile profile-1a2b", want: Partial},
		"NoProfile":     {reason: "Without a profile the node is nobody.", keys: "_machinekey _profiles _current-profile", want: Partial},
		"NoCurrent":     {reason: "Which profile is the node's must be known.", keys: "_machinekey _profiles profile-1a2b", want: Partial},
		"NoKnown":       {reason: "So must be which profiles there are.", keys: "_machinekey _current-profile profile-1a2b", want: Partial},
		"Joining":       {reason: "The machine key comes first.", keys: "_machinekey", want: Partial},
		"EmptyValue":    {reason: "A key without a value is not there.", keys: "_machinekey _profiles _current-profile profile-1a2b=", want: Partial},
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
