// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package skew pins what components of different versions exchange: docs/skew.md lists these
// contracts and the rules for changes.
package skew
