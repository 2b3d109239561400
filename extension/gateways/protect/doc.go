// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package protect finds what protects the Services behind the routes of a Gateway: policies of Envoy
// Gateway and of this project, client certificates that listeners require, and filters of routes. The
// package is pure: it looks up no object.
package protect
