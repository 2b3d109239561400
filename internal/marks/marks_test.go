// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package marks

import "testing"

func TestMarks(t *testing.T) {
	// The marks of existing keys must not change, or nothing recognizes them any more.
	for want, got := range map[string]string{
		"tsgw b14290d01165b130": Machine("c", "ns", "web"),
		"tsgw ade4089b252aa3":   AuthKey("c", "ns", "web"),
		"tsgw b14290d01165b1":   Credential("c", "ns", "web"),
	} {
		if got != want {
			t.Errorf("want mark %q, got %q", want, got)
		}
	}
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason            string
		description       string
		wantMark, wantTxt string
	}{
		"Machine":  {reason: "The mark of a Machine has 16 digits.", description: "tsgw 0123456789abcdef ns-web", wantMark: "tsgw 0123456789abcdef", wantTxt: "ns-web"},
		"AuthKey":  {reason: "Other marks have 14 digits.", description: "tsgw 0123456789abcd ns-web", wantMark: "tsgw 0123456789abcd", wantTxt: "ns-web"},
		"MarkOnly": {reason: "A text is optional.", description: "tsgw 0123456789abcd", wantMark: "tsgw 0123456789abcd"},
		"Longer":   {reason: "More digits are no mark.", description: "tsgw 0123456789abcdef0", wantTxt: "tsgw 0123456789abcdef0"},
		"Foreign":  {reason: "Keys of others have no mark.", description: "laptop", wantTxt: "laptop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.description); got != tc.wantMark {
				t.Errorf("\n%s\nOf(...): want %q, got %q", tc.reason, tc.wantMark, got)
			}
			if got := Text(tc.description); got != tc.wantTxt {
				t.Errorf("\n%s\nText(...): want %q, got %q", tc.reason, tc.wantTxt, got)
			}
		})
	}
}
