// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package index holds the objects that the extension has seen, and makes a new Snapshot of
// package ir when one of them changes. A Store recomputes only what depends on the changed
// object, and digests what each Gateway depends on. Package parse reads the objects, and package
// watch brings them here.
package index
