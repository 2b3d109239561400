// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// requests are what the provider requests of the machine, in annotations of its config Secret.
type requests struct {
	// restart is the request to restart the tailscale container.
	restart restart

	// remedy is the action for a service without a primary host.
	remedy remedy

	// withdrawals are the services that the provider has withdrawn from this machine.
	withdrawals withdrawals

	// watched are the node IDs of the hosts to watch.
	watched []string

	// handover is the answer to a pod that is being stopped.
	handover meta.Handover
}

// read reads the requests in the annotations of the config Secret. It returns an error if it ignores
// one of them.
func (r *requests) read(annotations map[string]string, tn localapi.State) error {
	r.restart.read(annotations, tn)
	r.withdrawals = withdrawalsIn(annotations)
	r.watched = meta.WatchedHosts(annotations)
	r.handover = handoverIn(annotations)
	return r.remedy.set(annotations[meta.AnnotationRemedy])
}

// due returns when a request ends, or zero.
func (r *requests) due(at time.Time) time.Time {
	return earliest(at, r.remedy.absence.due(), r.withdrawals.next(at))
}
