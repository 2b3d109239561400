// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak has routes, targets and endpoints change for a long time in front of a
// real Envoy Gateway, a real Envoy, two replicas of the extension and a real API server,
// while one after the other of these fails, and watches that nothing grows, that no
// request is lost and that changes arrive. Each replica has a network namespace of its
// own, so that its packets can be dropped. The goals are not here.
package soak
