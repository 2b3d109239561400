// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
)

// setState records whether the state Secret holds a node's identity, which rules containerboot has
// set up, and what it holds of certificates.
func (l *loop) setState(s *corev1.Secret) {
	if err := l.kernel.setState(s, l.opts.PodIP); err != nil {
		l.log.Info("Cannot act on what containerboot has set up", "secret", l.opts.stateSecret().String(), "error", err)
	}
	l.store.set(s)
	l.stateKnown = true
	l.stateLost = s == nil || nodestate.Of(s.Data) != nodestate.Whole
}

// recoverState logs the node out when the Secret has lost its state, or a part of it:
// tailscaled has the state only in memory, so any later restart would make the machine a new
// node. After the logout, containerboot logs in with the new auth key that the provider has
// written to the config. Without a key the node is left alone.
func (l *loop) recoverState(at time.Time) {
	if !l.stateLost || !l.tailnet.Running || l.drain != nil || !plan.HasAuthKey(l.base) {
		l.logoutAt = time.Time{}
		return
	}
	if l.logoutAt.IsZero() {
		// A node that has just logged in writes its state within a moment.
		l.logoutAt = at.Add(l.opts.StatePatience)
		return
	}
	if at.Before(l.logoutAt) {
		return
	}
	l.log.Info("Logging the node out to join again: its state is lost from the state Secret", "secret", l.opts.stateSecret().String())
	l.logoutAt = at.Add(l.opts.StatePatience)
	l.logout()
}
