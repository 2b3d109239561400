// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package ir holds the intermediate representation of the extension: the types that routes,
// policies and targets are parsed and resolved into, and the immutable Snapshot of them. The
// hooks and the endpoint server read nothing else. The package is pure and knows no object of
// the Kubernetes API.
package ir
