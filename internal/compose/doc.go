// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package compose holds what all composition functions share: one run of a
// function over its request and response, names of children, and the server.
// What a function composes, and why, is in functions/. The package is pure but
// for the server: no clock, no random numbers, no I/O.
package compose
