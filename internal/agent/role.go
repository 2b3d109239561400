// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A role is a task of the pod. The loop has a list of the roles of its pod. Only the loop's
// goroutine calls their methods, except watch. A role has its own state and receives facts: it
// does not know the loop.
type role interface {
	// watch watches the role's objects in the Kubernetes API until ctx is done.
	watch(ctx context.Context)

	// restore loads what an earlier run of the agent in this pod has written.
	restore(ctx context.Context) error

	// prepare does the work that is due before containerboot's files change. It is called while
	// the services of the pod are known.
	prepare(ctx context.Context, at time.Time, f facts)

	// step does the work that is due after that. It returns when to call it again if nothing
	// changes, or zero.
	step(ctx context.Context, at time.Time, f facts) time.Time

	// started reports whether the role knows its configuration.
	started() bool

	// unready returns why the pod cannot fill the role yet, or "".
	unready() string

	// busy reports whether connections are open. It is called at the end of a drain.
	busy() bool

	// drain extends a drain for the clients of the role.
	drain(at time.Time, d *drain)

	// report adds the state of the role to the pod's status.
	report(s *v1alpha1.MachineAgentStatus)

	// close ends the role. The loop has ended before.
	close()
}

// plainRole is embedded in roles that need only some of the methods.
type plainRole struct{}

func (plainRole) watch(context.Context)                            {}
func (plainRole) restore(context.Context) error                    { return nil }
func (plainRole) prepare(context.Context, time.Time, facts)        {}
func (plainRole) step(context.Context, time.Time, facts) time.Time { return time.Time{} }
func (plainRole) started() bool                                    { return true }
func (plainRole) unready() string                                  { return "" }
func (plainRole) busy() bool                                       { return false }
func (plainRole) drain(time.Time, *drain)                          {}
func (plainRole) report(*v1alpha1.MachineAgentStatus)              {}
func (plainRole) close()                                           {}

// roles are the roles of one pod, in the order of their steps.
type roles []role

func (rs roles) restore(ctx context.Context) error {
	for _, r := range rs {
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (rs roles) prepare(ctx context.Context, at time.Time, f facts) {
	for _, r := range rs {
		r.prepare(ctx, at, f)
	}
}

// step runs the steps of all roles, and returns when each is due again.
func (rs roles) step(ctx context.Context, at time.Time, f facts) []time.Time {
	due := make([]time.Time, 0, len(rs))
	for _, r := range rs {
		due = append(due, r.step(ctx, at, f))
	}
	return due
}

func (rs roles) started() bool {
	return !slices.ContainsFunc(rs, func(r role) bool { return !r.started() })
}

// unready returns the reason of the first role that is not ready.
func (rs roles) unready() string {
	for _, r := range rs {
		if reason := r.unready(); reason != "" {
			return reason
		}
	}
	return ""
}

func (rs roles) busy() bool { return slices.ContainsFunc(rs, role.busy) }

func (rs roles) drain(at time.Time, d *drain) {
	for _, r := range rs {
		r.drain(at, d)
	}
}

func (rs roles) report(s *v1alpha1.MachineAgentStatus) {
	for _, r := range rs {
		r.report(s)
	}
}

func (rs roles) close() {
	for _, r := range rs {
		r.close()
	}
}
