// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
)

// setState notes whether the state Secret holds a node's identity, and what
// containerboot has set up.
func (l *loop) setState(s *corev1.Secret) {
	if err := l.kernel.setState(s, l.opts.PodIP); err != nil {
		l.log.Info("Cannot act on what containerboot has set up", "secret", l.opts.stateSecret().String(), "error", err)
	}
	l.stateLost = s == nil || nodestate.Of(s.Data) != nodestate.Whole
}

// mendState logs the node out when its state is lost from the Secret, or a part of it: tailscaled
// has it in memory only, so the machine would be another one after any restart, at
// a time that nobody chose. Containerboot then logs in with the new key that the
// provider has put into the config; without one the machine is left as it is.
func (l *loop) mendState(now time.Time) {
	if !l.stateLost || !l.tailnet.Running || l.drain != nil || !plan.HasAuthKey(l.base) {
		l.logoutAt = time.Time{}
		return
	}
	if l.logoutAt.IsZero() {
		// A node that has just logged in writes its state down in a moment.
		l.logoutAt = now.Add(l.opts.StatePatience)
		return
	}
	if now.Before(l.logoutAt) {
		return
	}
	l.log.Info("Logging the node out to join anew: its state is lost from the state Secret", "secret", l.opts.stateSecret().String())
	l.logoutAt = now.Add(l.opts.StatePatience)
	l.logout()
}
