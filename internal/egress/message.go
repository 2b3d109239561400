// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"strings"
)

const (
	// Up to fewMessages of a status may have longMessage bytes, and more only shortMessage
	// bytes, so that the messages of the maximum number of targets have at most 256 KiB. An
	// object has 1.5 MiB at most.
	fewMessages  = 256
	longMessage  = 1024
	shortMessage = 128
)

// Cut returns a message, truncated to the limit for one of n messages.
func Cut(message string, n int) string {
	most := longMessage
	if n > fewMessages {
		most = shortMessage
	}
	if len(message) <= most {
		return message
	}
	const more = "..."
	return strings.ToValidUTF8(message[:most-len(more)], "") + more
}
