// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

// A Status describes the health of an endpoint.
type Status string

// Statuses of endpoints.
const (
	// Unknown endpoints are used like healthy ones: there is no result, or only failures to connect
	// from here.
	Unknown Status = "Unknown"
	// Healthy endpoints answer.
	Healthy Status = "Healthy"
	// Unhealthy endpoints are used last.
	Unhealthy Status = "Unhealthy"
)

// Thresholds for a change of status.
type Thresholds struct {
	// Score below which an endpoint is unhealthy.
	Score int

	// Healthy and Unhealthy are the numbers of successes and failures in a row that change the
	// status. Less than one means one.
	Healthy, Unhealthy int
}

// A Result of one probe.
type Result struct {
	OK bool

	// Answered reports that the endpoint answered, possibly with an error. Other failures may be
	// failures of the network.
	Answered bool

	// Reason of a failure. The text stays the same while its cause does.
	Reason string
}

// A State holds the health of an endpoint. The zero value has no results.
type State struct {
	History History
	Status  Status
	Score   int

	// Reason for an unhealthy status.
	Reason string

	// Reached reports that it has answered before.
	Reached bool
}

// Next returns the state after a result. blind reports that no other host has answered since the
// endpoint's failures began: a failure to connect then does not make the endpoint unhealthy,
// because the fault may be on this side. An endpoint that was never reached does not become
// unhealthy either: Envoy detects by itself whether it can reach the endpoint.
func (s State) Next(result Result, f Facts, t Thresholds, blind bool) State {
	s.History = s.History.Add(result.OK)
	s.Reached = s.Reached || result.OK || result.Answered
	if result.Reason != "" {
		s.Reason = result.Reason
	}
	evidence := result.OK || result.Answered || s.Reached && !blind
	return s.evaluate(f, t, evidence)
}

// Learn returns the state after changed facts.
func (s State) Learn(f Facts, t Thresholds) State { return s.evaluate(f, t, s.History.failures == 0) }

const (
	reasonDisabled = "is disabled"
	reasonOffline  = "the tailnet reports the device as offline"
	reasonFlaps    = "answers intermittently"
)

func (s State) evaluate(f Facts, t Thresholds, evidence bool) State {
	s.Score = Score(s.History, f)
	// The threshold alone decides about failures in a row: up to it their penalty does not count.
	history := s.History
	if history.failures < max(t.Unhealthy, 1) {
		history.failures = 0
	}
	unhealthy := Score(history, f) < t.Score || s.History.failures >= max(t.Unhealthy, 1)
	switch {
	case f.Disabled:
		s.Status, s.Reason = Unhealthy, reasonDisabled
	case f.Offline:
		s.Status, s.Reason = Unhealthy, reasonOffline
	case unhealthy && evidence:
		s.Status = Unhealthy
		if s.History.failures == 0 {
			s.Reason = reasonFlaps
		}
	case !unhealthy && s.History.successes >= max(t.Healthy, 1):
		s.Status, s.Reason = Healthy, ""
	case s.Status == "" || s.Status == Unhealthy && s.Reason == reasonOffline && s.History.count == 0:
		s.Status, s.Reason = Unknown, ""
	}
	return s
}

// Failing reports whether the endpoint is unhealthy or has failed often enough in a row, whatever
// the reason.
func (s State) Failing(t Thresholds) bool {
	return s.Status == Unhealthy || s.History.failures >= max(t.Unhealthy, 1)
}
