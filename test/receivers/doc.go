// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package receivers holds the test that no type of the product has so many methods that it answers
// for everything.
package receivers
