// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity names the headers by which a backend is told who asks. The agent
// sets them, and the extension has Envoy drop them where they can only be made up.
package identity

import (
	"slices"
	"strings"
)

// Headers of users are those of tailscaled (ipn/ipnlocal/serve.go,
// addTailscaleIdentityHeaders), so that a backend sees no difference. Tailscale has
// none for devices and tags: those are ours.
const (
	Login   = "Tailscale-User-Login"
	Name    = "Tailscale-User-Name"
	Picture = "Tailscale-User-Profile-Pic"
	Info    = "Tailscale-Headers-Info"

	// DeviceName is the DNS name of the device in its tailnet.
	DeviceName = "Tailscale-Device-Name"

	// DeviceTags are the tags of a device that has some, after one another with commas.
	DeviceTags = "Tailscale-Device-Tags"
)

// Headers are all that nobody but a proxy may set: those above, and two more that
// tailscaled sets of requests that it serves itself.
func Headers() []string {
	return []string{Login, Name, Picture, Info, DeviceName, DeviceTags, "Tailscale-Funnel-Request", "Tailscale-App-Capabilities"}
}

// Is reports whether a backend may take a header for one of Headers. Names differ by
// neither case nor underscores: CGI and what descends from it, such as WSGI, has one
// variable for Tailscale-User-Login and Tailscale_User_Login.
func Is(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	return slices.ContainsFunc(Headers(), func(h string) bool { return strings.EqualFold(h, name) })
}

// Pattern is a regular expression for the whole name of a header, in lower case. It
// matches what Is tells.
func Pattern() string {
	return strings.ReplaceAll(strings.ToLower(strings.Join(Headers(), "|")), "-", "[-_]")
}
