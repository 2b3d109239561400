// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package xds builds Envoy's resources from the types of package ir: clusters, endpoint lists and
// parts of routes. It is pure: the same input gives the same bytes.
package xds
