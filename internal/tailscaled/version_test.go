// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaled

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

func TestTested(t *testing.T) {
	_, image, _ := strings.Cut(products.Tailscale, ":v")
	cases := map[string]struct {
		reason  string
		version string
		want    bool
	}{
		"Oldest":          {reason: "The range begins with the oldest version.", version: Oldest, want: true},
		"Newest":          {reason: "The range ends with the newest version.", version: Newest, want: true},
		"Default":         {reason: "The default image must be in the range.", version: image, want: true},
		"Long":            {reason: "tailscaled reports a version with commits.", version: "1.102.5-t0123456789-g0123456789", want: true},
		"Later patch":     {reason: "Later patches of the newest minor version are in the range.", version: "1.104.99", want: true},
		"Too old":         {reason: "An older minor version is outside of the range.", version: "1.80.3"},
		"Too old a patch": {reason: "An older patch of the oldest minor version is outside of the range.", version: "1.86.1"},
		"Too new":         {reason: "A newer minor version is outside of the range.", version: "1.106.0"},
		"Major":           {reason: "A newer major version is outside of the range.", version: "2.0.0"},
		"Empty":           {reason: "A version that is not known is outside of the range."},
		"Other form":      {reason: "A version of another form is outside of the range.", version: "1.102"},
		"Not a number":    {reason: "A part that is not a number is outside of the range.", version: "1.x.5"},
		"Large":           {reason: "A number that no version has is outside of the range.", version: "1.99999999999999999999.5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Tested(tc.version); got != tc.want {
				t.Errorf("\n%s\nTailscaledTested(%q): want %t, got %t", tc.reason, tc.version, tc.want, got)
			}
		})
	}
}

func TestAsksForKeys(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		want    bool
	}{
		"Last without": {reason: "Containerboot exits.", version: "1.96.0"},
		"Oldest":       {reason: "Containerboot exits.", version: Oldest},
		"First":        {reason: "Containerboot asks.", version: "1.96.2-t0123456789", want: true},
		"Newest":       {reason: "Later versions ask.", version: Newest, want: true},
		"Unknown":      {reason: "Unknown is not old.", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := AsksForKeys(tc.version); got != tc.want {
				t.Errorf("\n%s\nTailscaledAsksForKeys(%q): want %t, got %t", tc.reason, tc.version, tc.want, got)
			}
		})
	}
}

func TestSendsClients(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		want    bool
	}{
		"Last without": {reason: "The setting is ignored.", version: "1.90.9"},
		"Oldest":       {reason: "The setting is ignored.", version: Oldest},
		"First":        {reason: "The setting is new.", version: "1.92.0", want: true},
		"Newest":       {reason: "Later versions have the setting.", version: Newest, want: true},
		"Unknown":      {reason: "Unknown is not old.", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SendsClients(tc.version); got != tc.want {
				t.Errorf("\n%s\nTailscaledSendsClients(%q): want %t, got %t", tc.reason, tc.version, tc.want, got)
			}
		})
	}
}
