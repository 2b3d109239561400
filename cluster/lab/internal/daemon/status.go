// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"sync"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// A State is the state of a step.
type State string

// States of steps.
const (
	StatePending State = "pending"
	StateRunning State = "running"
	StateDone    State = "done"
	StateFailed  State = "failed"
)

// A Step is one step of bringing up the lab.
type Step struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Detail says what a running step waits for, or why it failed.
	Detail string `json:"detail,omitempty"`
	// Started is the time of the start; Took is the duration, once the step has ended.
	Started time.Time     `json:"started,omitzero"`
	Took    time.Duration `json:"took,omitempty"`
}

// A ComponentStatus is the state of one process.
type ComponentStatus struct {
	Name    string `json:"name"`
	Program string `json:"program"`
	Cluster string `json:"cluster,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Restarts counts how often it was started again.
	Restarts int `json:"restarts"`
	// Healthy is the result of its check, at the time of the request.
	Healthy bool   `json:"healthy"`
	Detail  string `json:"detail,omitempty"`
}

// A Forward forwards connections from the host's loopback into the lab.
type Forward struct {
	Name string `json:"name"`
	// From is the address on the loopback, To the one inside of the lab.
	From string `json:"from"`
	To   string `json:"to"`
	// Namespace is the network namespace in which To is dialed.
	Namespace string `json:"namespace"`
}

// A Status is the state of the daemon.
type Status struct {
	// Clusters and Tailnets are the numbers of the lab's clusters and tailnets.
	Clusters int `json:"clusters"`
	Tailnets int `json:"tailnets"`
	// IPFamily is the address families of the clusters' networks.
	IPFamily plan.IPFamily `json:"ipFamily"`
	// SlowPaths is true in a lab without direct paths.
	SlowPaths bool `json:"slowPaths,omitempty"`
	// Ready is true once all steps are done; Failed when one failed.
	Ready      bool              `json:"ready"`
	Failed     bool              `json:"failed"`
	Steps      []Step            `json:"steps"`
	Components []ComponentStatus `json:"components,omitempty"`
	Forwards   []Forward         `json:"forwards,omitempty"`
}

// progress collects steps. It is safe for concurrent use.
type progress struct {
	clock func() time.Time

	mu    sync.Mutex
	steps []Step
}

// run runs f as a step. f calls say to report what it waits for.
func (p *progress) run(name string, f func(say func(string)) error) error {
	p.mu.Lock()
	i := len(p.steps)
	p.steps = append(p.steps, Step{Name: name, State: StateRunning, Started: p.clock()})
	p.mu.Unlock()
	err := f(func(s string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.steps[i].Detail = s
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.steps[i]
	s.State, s.Detail, s.Took = StateDone, "", p.clock().Sub(s.Started)
	if err != nil {
		s.State, s.Detail = StateFailed, err.Error()
	}
	return err
}

func (p *progress) list() []Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Step(nil), p.steps...)
}
