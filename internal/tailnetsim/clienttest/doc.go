// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package clienttest has the tests that drive the simulator by Tailscale's official
// Go client: every method of every resource, by every way to authenticate. They
// compare the simulator's routes and replies with Tailscale's OpenAPI document.
package clienttest
