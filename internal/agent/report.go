// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A report is what the agent reports to the pod's Machine, besides the states of services and roles.
type report struct {
	// set sets the status to report, and last is the last one. Nil if there was none.
	set  func(*v1alpha1.MachineAgentStatus)
	last *v1alpha1.MachineAgentStatus

	// patience is how long the first report waits for tailscaled to join.
	patience time.Duration

	// joined reports whether tailscaled has been in its tailnet. Before that, nothing is reported
	// until start.
	joined bool
	start  time.Time

	// version is the last version that tailscaled reported. The image of a pod does not change, and a
	// tailscaled that cannot log in may run for moments only.
	version string

	// login is the login error to report.
	login loginReport

	// paths are the paths to peers that are reported. Nil while there was no traffic.
	paths *v1alpha1.MachinePaths
}

// step notes since when there is something to report, and whether tailscaled has joined.
func (r *report) step(at time.Time, running bool) {
	if r.start.IsZero() {
		r.start = at.Add(r.patience)
	}
	r.joined = r.joined || running
}

// allowed reports whether the agent may report the machine's status. A pod that is being stopped
// reports nothing else: either its Machine is deleted, or the pod serves again.
func (r *report) allowed(at time.Time, draining bool) bool {
	return !draining && (r.joined || !at.Before(r.start))
}

// publish reports a status.
func (r *report) publish(s *v1alpha1.MachineAgentStatus) {
	r.set(s)
	r.last = s
}

// stop reports that the pod stops, and since when.
func (r *report) stop(start time.Time) {
	if r.last == nil {
		return
	}
	s := r.last.DeepCopy()
	s.StoppingSince = &metav1.Time{Time: start}
	r.set(s)
}
