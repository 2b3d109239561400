// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak changes routes, targets and endpoints for a long time in front of a real Envoy
// Gateway, a real Envoy, two replicas of the extension and a real API server, while one of these
// fails after the other. It checks that memory does not grow, that no request is lost and that
// changes arrive. Each replica has a separate network namespace, so that its packets can be
// dropped. The goals are in the caller.
package soak
