// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients returns a client of Tailscale's API for a managed resource's reference to a
// provider config. It reads the config and the credentials Secret, protects that Secret while it is
// in use, and reports what to fix when something is missing. The packages next to this one use the
// client.
package clients
