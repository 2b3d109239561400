// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package notice tells people, by events on their routes, which Tailscale backends of a
// route nobody answers for, and why. The status of a route is Envoy Gateway's to write,
// and it knows no more of our kinds than that they exist.
//
// Every replica finds out the same, and none is chosen to tell: the name of an event
// follows from what it says, so that the second to tell finds it told.
package notice
