// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package upgrade judges an upgrade of a running installation: it compares the state of a cluster
// and of its tailnets before and after, and counts lost requests. It is pure; the test that upgrades
// a lab is TestUpgrade of test/e2e.
package upgrade
