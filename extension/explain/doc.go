// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain explains where a request goes, and why: it returns the rule that handles the
// request, its backends, and their endpoints, from a snapshot of the index. Package index makes the
// decisions; this package describes them, as JSON and on a read-only HTML page. The functions that
// explain are pure.
package explain
