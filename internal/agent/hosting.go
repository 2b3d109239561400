// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A hostingRole keeps a new ingress pod unready until control has accepted it as a host of the services
// that it advertises. Rollouts and evictions wait for ready pods: without it, they would stop the next
// host while this one waits for an approval.
//
// It is part of the agent's readiness probe, not a condition in the pod's readinessGates. The
// right to write a condition of a pod includes all of its status, also the addresses to which Services lead
// (kubernetes v1.35 pkg/registry/core/pod/strategy.go, podStatusStrategy). If that was the provider,
// pods would not become ready without it.
//
// A pod that has been ready for its services once stays so: later approvals, backends and certificates
// concern single services.
type hostingRole struct {
	plainRole

	log logging.Logger

	// patience is how long the pod waits at most once tailscaled has joined.
	patience time.Duration

	done bool

	// deadline is when the pod becomes ready in any case: somebody may have to approve it, or refuse to.
	// Zero until tailscaled has joined.
	deadline time.Time

	// waiting says what the pod waits for.
	waiting string
}

// step updates what the pod waits for. It returns when the wait ends, or zero.
func (h *hostingRole) step(_ context.Context, at time.Time, f facts) time.Time {
	if h.done {
		return time.Time{}
	}
	switch {
	case !f.tailnet.Running:
		h.waiting = "Waiting for tailscaled to join the tailnet"
		return time.Time{}
	case !f.listed:
		h.waiting = "Waiting to read the services of the pod"
		return time.Time{}
	}
	if h.deadline.IsZero() {
		h.deadline = at.Add(h.patience)
	}
	i := slices.IndexFunc(f.services, f.isPending)
	h.done = i < 0 || !at.Before(h.deadline)
	if h.done {
		if i >= 0 {
			h.log.Info("The pod becomes ready although it does not host all services yet", "service", f.services[i].Name)
		}
		h.waiting = ""
		return time.Time{}
	}
	h.waiting = "Waiting for the tailnet to accept this machine as a host of " + f.services[i].Name
	return h.deadline
}

// unready returns what the pod waits for, or "".
func (h *hostingRole) unready() string { return h.waiting }
