// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
)

// A recoverRole logs the node out when the state Secret has lost its state, or a part of it:
// tailscaled has the state only in memory, so any later restart would make the machine a new
// node. After the logout, containerboot logs in with the new auth key that the provider has
// written to the config. Without a key the node is left alone.
type recoverRole struct {
	plainRole

	log logging.Logger

	// secret is the state Secret, for logs.
	secret string

	// patience is how long tailscaled may run while its state is missing.
	patience time.Duration

	// logout logs tailscaled out of its tailnet.
	logout func()

	// seen reports whether the state Secret, or that there is none, was seen.
	seen bool

	// lost reports that it was seen without a node's identity. If tailscaled continues without one,
	// it is logged out at logoutAt.
	lost     bool
	logoutAt time.Time
}

// setState records whether the state Secret, which is nil if there is none, holds a node's identity.
func (r *recoverRole) setState(s *corev1.Secret) {
	r.seen = true
	r.lost = s == nil || nodestate.Of(s.Data) != nodestate.Whole
}

// step logs the node out when its state stays lost.
func (r *recoverRole) step(_ context.Context, at time.Time, f facts) time.Time {
	if !r.lost || !f.tailnet.Running || f.draining || !plan.HasAuthKey(f.base) {
		r.logoutAt = time.Time{}
		return r.logoutAt
	}
	if r.logoutAt.IsZero() {
		// A node that has just logged in writes its state within a moment.
		r.logoutAt = at.Add(r.patience)
		return r.logoutAt
	}
	if at.Before(r.logoutAt) {
		return r.logoutAt
	}
	r.log.Info("Logging the node out to join again: its state is lost from the state Secret", "secret", r.secret)
	r.logoutAt = at.Add(r.patience)
	r.logout()
	return r.logoutAt
}
