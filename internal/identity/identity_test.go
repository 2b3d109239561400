// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"regexp"
	"strings"
	"testing"
)

func TestIs(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   bool
	}{
		"Tailscale-User-Login":        {reason: "The header identifies a user.", want: true},
		"tailscale-device-tags":       {reason: "Case makes no difference.", want: true},
		"TAILSCALE_USER_PROFILE_PIC":  {reason: "CGI treats underscores as dashes.", want: true},
		"Tailscale_device-Name":       {reason: "Underscores and dashes can be mixed.", want: true},
		"Tailscale.User.Login":        {reason: "PHP treats dots as underscores.", want: true},
		"Tailscale-User.Login":        {reason: "Dots and dashes can be mixed.", want: true},
		"tailscale~user!login":        {reason: "Some servers map all other characters to underscores.", want: true},
		"Tailscale-User-L\u00f6gin":   {reason: "A letter is no separator of others."},
		"Tailscale-App-Capabilities":  {reason: "Clients must not forge a header that tailscaled sets.", want: true},
		"Tailscale-Ingress-Target":    {reason: "The header does not identify the client."},
		"X-Tailscale-User-Login":      {reason: "The whole name counts."},
		"Tailscale-User-Login-Before": {reason: "The whole name counts."},
		"TailscaleUserLogin":          {reason: "A name without separators is another header."},
	}
	pattern := regexp.MustCompile("^(?:" + Pattern() + ")$")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Is(name); got != tc.want {
				t.Errorf("\n%s\nIs(%q): want %t, got %t", tc.reason, name, tc.want, got)
			}
			if got := pattern.MatchString(strings.ToLower(name)); got != tc.want {
				t.Errorf("\n%s\nPattern() of %q: want %t, got %t", tc.reason, name, tc.want, got)
			}
		})
	}
}
