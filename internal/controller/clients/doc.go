// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients turns a managed resource's reference to a provider config
// into a client of Tailscale's API: it reads the config and the credentials
// Secret, protects that Secret while it is in use, and says what to fix when
// something is missing. What is done with the client lives in the packages
// beside this one.
package clients
