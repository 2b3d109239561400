// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

// A Status is what is held of an endpoint.
type Status string

// Statuses of endpoints.
const (
	// Unknown endpoints are used as if nobody had asked them: nothing is known of
	// them, or only that they cannot be reached from here.
	Unknown Status = "Unknown"
	// Healthy endpoints answer.
	Healthy Status = "Healthy"
	// Unhealthy endpoints come last.
	Unhealthy Status = "Unhealthy"
)

// Thresholds of a verdict.
type Thresholds struct {
	// Score below which an endpoint is unhealthy.
	Score int

	// Healthy and Unhealthy are how many successes and failures in a row settle it.
	// Less than one means one.
	Healthy, Unhealthy int
}

// A Result is that of one probe.
type Result struct {
	OK bool

	// Answered reports that the endpoint did answer, though it may be with an error.
	// Others say as much of the network between as of the endpoint.
	Answered bool

	// Reason of a failure, in words that do not change while its cause does not.
	Reason string
}

// A Record is all that is held of an endpoint. The zero value is an endpoint that
// nobody has asked.
type Record struct {
	History History
	Status  Status
	Score   int

	// Reason why it is unhealthy.
	Reason string

	// Reached reports that it has answered before.
	Reached bool
}

// Next record after a result. Blind reports that nobody else has been reached since the
// endpoint's failures began: then who cannot be reached is not called unhealthy, for the
// fault may be on this side. Nor is who never was: that Envoy cannot reach it either is
// for Envoy to find out.
func (r Record) Next(in Result, f Facts, t Thresholds, blind bool) Record {
	r.History = r.History.Add(in.OK)
	r.Reached = r.Reached || in.OK || in.Answered
	if in.Reason != "" {
		r.Reason = in.Reason
	}
	evidence := in.OK || in.Answered || r.Reached && !blind
	return r.judge(f, t, evidence)
}

// Learn what others tell of the endpoint.
func (r Record) Learn(f Facts, t Thresholds) Record { return r.judge(f, t, r.History.failures == 0) }

const (
	reasonDisabled = "is not to be used"
	reasonOffline  = "the tailnet reports the device as offline"
	reasonFlaps    = "answers only now and then"
)

func (r Record) judge(f Facts, t Thresholds, evidence bool) Record {
	r.Score = Score(r.History, f)
	// How many failures in a row are too many is a threshold's to say: till then the
	// penalty for them is not held against the endpoint.
	judged := r.History
	if judged.failures < max(t.Unhealthy, 1) {
		judged.failures = 0
	}
	sick := Score(judged, f) < t.Score || r.History.failures >= max(t.Unhealthy, 1)
	switch {
	case f.Disabled:
		r.Status, r.Reason = Unhealthy, reasonDisabled
	case f.Offline:
		r.Status, r.Reason = Unhealthy, reasonOffline
	case sick && evidence:
		r.Status = Unhealthy
		if r.History.failures == 0 {
			r.Reason = reasonFlaps
		}
	case !sick && r.History.successes >= max(t.Healthy, 1):
		r.Status, r.Reason = Healthy, ""
	case r.Status == "" || r.Status == Unhealthy && r.Reason == reasonOffline && r.History.count == 0:
		r.Status, r.Reason = Unknown, ""
	}
	return r
}

// Failing reports whether as many probes in a row have failed as make an endpoint
// unhealthy, whatever the reason.
func (r Record) Failing(t Thresholds) bool {
	return r.Status == Unhealthy || r.History.failures >= max(t.Unhealthy, 1)
}
