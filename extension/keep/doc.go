// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package keep keeps objects in the Kubernetes API as an index's snapshot asks for,
// while every replica of the extension does so at once and none is chosen. What the
// objects are lives with who keeps them, packages trigger and anchor.
//
// Replicas that know the same want the same, so whoever hears of a change first
// writes, and the others find it done. One that lags must not write what was: it waits
// when it finds a state that it has never wanted, for that is likely what it will want
// next. A state that it wanted once and no longer wants is older than its own, and is
// replaced at once. Every write names the version of the object that it replaces.
package keep
