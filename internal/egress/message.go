// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"strings"
)

const (
	// fewMessages of a status may be as long as longMessage, more only as
	// shortMessage: in bytes, all together are no more than 256 KiB for as many
	// targets as there can be. An object has 1.5 MiB at most.
	fewMessages  = 256
	longMessage  = 1024
	shortMessage = 128
)

// Cut returns a message as long as one of n may be.
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
