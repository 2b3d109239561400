// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package parse converts objects of the Kubernetes API into the types of package ir, one object
// at a time. The package is pure: it looks up no other object. It also lists the kinds that the
// extension reads, and strips objects of the fields that it does not read.
package parse
