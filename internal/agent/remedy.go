// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// restartPatience is how long kubelet can take to restart tailscaled, before this machine serves
// again without a restart. A drain and the failures of the liveness probe take up to three and a half
// minutes.
const restartPatience = 5 * time.Minute

// A remedy is the action that the provider requests for a service without a primary host. The
// provider requests it of one machine at a time. The zero value does nothing.
type remedy struct {
	// text is the request, and handled is the one that was acted on last.
	text, handled string
	request       meta.Remedy

	// withdrawn is the service that is withdrawn for a moment, and absence the moment.
	withdrawn string
	absence   absence

	// restart reports that tailscaled is to restart once the drain is over.
	restart bool
}

// set sets the request of a config Secret.
func (m *remedy) set(text string) error {
	if text == m.text {
		return nil
	}
	m.text, m.request = text, meta.Remedy{}
	if text == "" {
		return nil
	}
	return errors.Wrapf(json.Unmarshal([]byte(text), &m.request), "cannot parse annotation %s", meta.AnnotationRemedy)
}

// step returns the action to begin now, or "". dead reports whether a service has no primary host
// as far as this machine knows, and idle whether it can act at all.
func (m *remedy) step(at time.Time, dead func(service string) bool, idle bool) v1alpha1.RemedyAction {
	if m.absence.over(at) {
		m.withdrawn = ""
		m.absence.end()
	}
	if m.text == m.handled || m.request.Service == "" || !at.Before(m.request.Deadline) || !idle || !dead(m.request.Service) {
		return ""
	}
	m.handled = m.text
	switch m.request.Action {
	case v1alpha1.RemedyActionAdvertise:
		m.withdrawn = m.request.Service
		m.absence.begin(at)
	case v1alpha1.RemedyActionRestart:
		m.restart = true
	}
	return m.request.Action
}
