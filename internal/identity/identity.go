// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity names the headers that identify the client to a backend. The agent sets
// them, and the extension configures Envoy to remove them at listeners where no proxy sets
// them.
package identity

import (
	"slices"
	"strings"
)

// Headers of users are those of tailscaled (ipn/ipnlocal/serve.go,
// addTailscaleIdentityHeaders), so that a backend sees no difference. Tailscale has none for
// devices and tags: those are specific to Tailscale Gateway.
const (
	Login   = "Tailscale-User-Login"
	Name    = "Tailscale-User-Name"
	Picture = "Tailscale-User-Profile-Pic"
	Info    = "Tailscale-Headers-Info"

	// DeviceName is the DNS name of the device in its tailnet.
	DeviceName = "Tailscale-Device-Name"

	// DeviceTags are the tags of a tagged device, separated by commas.
	DeviceTags = "Tailscale-Device-Tags"
)

// Headers returns the headers that only a proxy may set: those above, and two more that
// tailscaled sets on requests that it serves itself.
func Headers() []string {
	return []string{Login, Name, Picture, Info, DeviceName, DeviceTags, "Tailscale-Funnel-Request", "Tailscale-App-Capabilities"}
}

// Is reports whether a backend may read a header as one of Headers. Case does not matter, and any
// other character than a letter or digit stands for a dash: backends map names of headers to names of
// variables, and so to the same one. CGI and its descendants, such as WSGI, do so with underscores,
// PHP with dots (php/php-src main/php_variables.c, php_register_variable_ex), and Apache's mod_fcgid
// with all of them (modules/fcgid/fcgid_bridge.c, http2env).
func Is(name string) bool {
	name = strings.Map(separator, name)
	return slices.ContainsFunc(Headers(), func(h string) bool { return strings.EqualFold(h, name) })
}

// separator replaces all characters except ASCII letters and digits by dashes.
func separator(r rune) rune {
	if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
		return r
	}
	return '-'
}

// Pattern returns a regular expression for the whole name of a header, in lower case. It
// matches the headers for which Is returns true.
func Pattern() string {
	return strings.ReplaceAll(strings.ToLower(strings.Join(Headers(), "|")), "-", "[^a-z0-9]")
}
