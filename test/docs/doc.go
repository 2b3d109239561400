// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the tests of the Markdown pages: every relative link leads to a file,
// every #anchor to a heading, every page of docs/ is in the index, diagrams parse, and YAML
// samples are valid.
package docs
