// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package index holds the objects that the extension has seen, and builds a new Snapshot of
// package ir when one of them changes. A Store recomputes only the parts that depend on the
// changed object, and has a digest of the contents that each Gateway depends on. Package
// parse reads the objects, and package watch delivers them to the Store.
package index
