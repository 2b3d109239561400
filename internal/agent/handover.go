// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
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

// holds reports whether the drain keeps services advertised.
func (d *drain) holds() bool { return d != nil && !d.over() && !d.hold.IsZero() }

// holdServices keeps services advertised as long as clients have the time of a drain after that, and
// reports that the pod stops.
func (l *loop) holdServices(at time.Time) {
	d := l.drain
	hold := d.last.Add(-l.opts.Drain)
	if !hold.After(at) {
		return
	}
	d.hold, d.moveEnd, d.cut = hold, d.last, d.last
	if l.reported == nil {
		return
	}
	s := l.reported.DeepCopy()
	s.StoppingSince = &metav1.Time{Time: d.start}
	l.report(s)
}

// held returns which of the advertised services stay advertised during a drain.
func (l *loop) held(at time.Time, services []plan.Service, listed bool) []string {
	d := l.drain
	if !d.holds() || !at.Before(d.hold) {
		return nil
	}
	healthy := plan.Advertised(services)
	return slices.DeleteFunc(slices.Clone(l.advertised), func(name string) bool {
		released := d.start.Equal(l.handover.StopTime.Time) && slices.Contains(l.handover.Services, name)
		return released || !l.hasClients(name) || listed && !slices.Contains(healthy, name)
	})
}

// handOver begins the clients' time to move once no service is advertised any more.
func (l *loop) handOver(at time.Time) {
	if !l.drain.holds() || len(l.advertised) > 0 {
		return
	}
	l.log.Info("Withdrew the last service", "after", at.Sub(l.drain.start).String(), "grace", !at.Before(l.drain.hold))
	l.drain.hold = time.Time{}
	l.drain.giveTime(at, l.opts.Drain)
}
