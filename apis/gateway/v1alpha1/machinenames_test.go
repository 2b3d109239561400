// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

func TestMachineNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		input  string
		want   v1alpha1.MachineNames
		err    bool
	}{
		"Names":  {reason: "Names are a list.", input: `["a", "b"]`, want: v1alpha1.MachineNames{"a", "b"}},
		"Number": {reason: "An earlier version wrote the number of machines.", input: `2`},
		"Null":   {reason: "There may be none.", input: `null`},
		"Word":   {reason: "Nothing else was ever written.", input: `"a"`, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.MachineNames
			if err := json.Unmarshal([]byte(tc.input), &got); (err != nil) != tc.err {
				t.Errorf("%s\nUnmarshal(%s): unexpected error %v", tc.reason, tc.input, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nUnmarshal(%s): -want, +got:\n%s", tc.reason, tc.input, diff)
			}
		})
	}
}
