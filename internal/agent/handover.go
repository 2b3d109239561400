// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A service that its last host withdraws has no host, until the pod that takes the place of one that
// was stopped before has joined. So a pod that is being stopped keeps its services advertised, says in
// its Machine's status that it stops, and withdraws a service when the provider answers that another
// host has it. Without an answer it withdraws all services while clients still have time to move.
//
// The agent cannot find out itself. Its network map shows only the host that control sends clients to,
// and that host may have withdrawn the service: control takes about 15 s to choose another one
// (tailscale.com kube/services/services.go).

// handoverIn returns the provider's answer in the annotations of a config Secret. One that cannot be
// parsed is none.
func handoverIn(annotations map[string]string) meta.Handover {
	h := meta.Handover{}
	if err := json.Unmarshal([]byte(annotations[meta.AnnotationHandover]), &h); err != nil {
		return meta.Handover{}
	}
	return h
}

// answers reports whether an answer of the provider is one to this drain.
func (d *drain) answers(h meta.Handover) bool { return d != nil && d.start.Equal(h.StopTime.Time) }

// holds reports whether the drain keeps services advertised.
func (d *drain) holds() bool { return d != nil && !d.over() && !d.hold.IsZero() }

// holdServices keeps services advertised as long as clients have the time of a drain after that.
func (d *drain) holdServices(at time.Time) {
	hold := d.last.Add(-d.move)
	if !hold.After(at) {
		return
	}
	d.hold, d.moveEnd, d.cut = hold, d.last, d.last
}
