// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain answers people who ask where a request goes, and why: with the rule
// that takes it, its backends, and their endpoints, out of a snapshot of the index.
// Package index decides all that; here it is only told, as JSON and on a page of HTML
// that changes nothing. The functions that explain are pure.
package explain
