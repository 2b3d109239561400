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
		"Tailscale-User-Login":        {reason: "That of a user is.", want: true},
		"tailscale-device-tags":       {reason: "Case makes no difference.", want: true},
		"TAILSCALE_USER_PROFILE_PIC":  {reason: "Underscores make none to CGI.", want: true},
		"Tailscale_device-Name":       {reason: "They may be mixed.", want: true},
		"Tailscale-App-Capabilities":  {reason: "What tailscaled sets is not to be made up.", want: true},
		"Tailscale-Ingress-Target":    {reason: "What says nothing of who asks may pass."},
		"X-Tailscale-User-Login":      {reason: "The whole name counts."},
		"Tailscale-User-Login-Before": {reason: "The whole name counts."},
		"TailscaleUserLogin":          {reason: "Nobody takes it for the header."},
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
