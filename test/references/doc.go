// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package references holds the tests of names that texts of the repository use: a path, a test, a make
// target, a build tag or an owner's rule that a rename leaves behind fails.
package references
