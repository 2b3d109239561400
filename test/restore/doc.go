// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package restore loses a cluster and restores it into an empty one, as docs/backup.md describes.
// Both clusters are real API servers with Kubernetes' garbage collector and the provider, in one
// simulated tailnet. The test calls the functions as Crossplane does, and acts as the proxy pods.
//
//	make test-restore
//	go test -tags=integration ./test/restore/
//
// test/e2e does the same with real Crossplane and real tailscaled.
package restore
