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

// Is reports whether a backend may read a header as one of Headers. Case and underscores do not
// matter, because CGI and its descendants, such as WSGI, have the same variable for
// Tailscale-User-Login and Tailscale_User_Login.
func Is(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	return slices.ContainsFunc(Headers(), func(h string) bool { return strings.EqualFold(h, name) })
}

// Pattern returns a regular expression for the whole name of a header, in lower case. It
// matches the headers for which Is returns true.
func Pattern() string {
	return strings.ReplaceAll(strings.ToLower(strings.Join(Headers(), "|")), "-", "[-_]")
}
