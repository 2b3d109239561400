// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapitest

// A Bus is what a version of tailscaled reports to watchers.
type Bus int

const (
	// BusStatus reports a status at first and then changes, as versions from 1.100 on do. It refuses
	// NotifyInitialNetMap and NotifyRateLimit, as 1.104 does (tailscale.com ipn/backend.go,
	// ValidateNotifyWatchOpt).
	BusStatus Bus = iota

	// BusNetmaps reports whole netmaps and ignores the parts of a mask that 1.100 added, as
	// versions before 1.98 do. Such a version does not have the path /localapi/v0/dns-config.
	BusNetmaps

	// BusRefused refuses every mask.
	BusRefused
)

// SetVersion sets the version that the server reports, and its bus. It ends all watches.
func (s *Server) SetVersion(version string, bus Bus) {
	s.mu.Lock()
	s.node.version, s.node.bus = version, bus
	s.mu.Unlock()
	s.Disconnect()
}
