// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch feeds a Store of package index with objects from informers. It is the only
// package between the API server and the index.
package watch
