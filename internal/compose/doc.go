// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package compose holds the parts that all composition functions share: one run of a function with
// its request and response, names of children, and the server. The packages in functions/ decide
// which children a function composes. The package is pure except for the server: it uses no clock,
// no random numbers and no I/O.
package compose
