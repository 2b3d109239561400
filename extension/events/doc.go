// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package events reports, by events on routes, which Tailscale backends of a route are not
// served, and why. Envoy Gateway writes the status of a route, and knows only whether objects
// of our kinds exist.
//
// Every replica detects the same problems, and no leader is elected. The name of an event is a
// hash of its text, so all replicas write the same event.
package events
