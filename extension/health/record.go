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

// A Record holds the health of an endpoint. The zero value has no results.
type Record struct {
	History History
	Status  Status
	Score   int

	// Reason for an unhealthy status.
	Reason string

	// Reached reports that it has answered before.
	Reached bool
}

// Next returns the record after a result. blind reports that no other host has answered since the
// endpoint's failures began: a failure to connect then does not make the endpoint unhealthy,
// because the fault may be on this side. An endpoint that was never reached does not become
// unhealthy either: Envoy detects by itself whether it can reach the endpoint.
func (r Record) Next(result Result, f Facts, t Thresholds, blind bool) Record {
	r.History = r.History.Add(result.OK)
	r.Reached = r.Reached || result.OK || result.Answered
	if result.Reason != "" {
		r.Reason = result.Reason
	}
	evidence := result.OK || result.Answered || r.Reached && !blind
	return r.evaluate(f, t, evidence)
}

// Learn returns the record after changed facts.
func (r Record) Learn(f Facts, t Thresholds) Record { return r.evaluate(f, t, r.History.failures == 0) }

const (
	reasonDisabled = "is disabled"
	reasonOffline  = "the tailnet reports the device as offline"
	reasonFlaps    = "answers intermittently"
)

func (r Record) evaluate(f Facts, t Thresholds, evidence bool) Record {
	r.Score = Score(r.History, f)
	// The threshold alone decides about failures in a row: up to it their penalty does not count.
	history := r.History
	if history.failures < max(t.Unhealthy, 1) {
		history.failures = 0
	}
	unhealthy := Score(history, f) < t.Score || r.History.failures >= max(t.Unhealthy, 1)
	switch {
	case f.Disabled:
		r.Status, r.Reason = Unhealthy, reasonDisabled
	case f.Offline:
		r.Status, r.Reason = Unhealthy, reasonOffline
	case unhealthy && evidence:
		r.Status = Unhealthy
		if r.History.failures == 0 {
			r.Reason = reasonFlaps
		}
	case !unhealthy && r.History.successes >= max(t.Healthy, 1):
		r.Status, r.Reason = Healthy, ""
	case r.Status == "" || r.Status == Unhealthy && r.Reason == reasonOffline && r.History.count == 0:
		r.Status, r.Reason = Unknown, ""
	}
	return r
}

// Failing reports whether the endpoint is unhealthy or has failed often enough in a row, whatever
// the reason.
func (r Record) Failing(t Thresholds) bool {
	return r.Status == Unhealthy || r.History.failures >= max(t.Unhealthy, 1)
}
