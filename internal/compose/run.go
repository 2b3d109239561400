// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// Reasons of conditions that are unknown.
const (
	// ReasonWaiting means that the state of the condition is not reported yet.
	ReasonWaiting xpv2.ConditionReason = "Waiting"

	// ReasonCannotCompose means that the function failed.
	ReasonCannotCompose xpv2.ConditionReason = "CannotCompose"
)

// A Run is one call of a function: what it observes and requires, and its reply.
type Run struct {
	req *fnv1.RunFunctionRequest

	// step is the run's step in a pipeline of another composite. It is the zero value in a pipeline of
	// the product.
	step *step

	observed observed
	reply    *reply
}

// NewRun returns a run with an empty response to a request. The response does not expire, unless
// the plan sets RequeueAfter or the circuit breaker is open: Crossplane (2.4 and later) watches all
// objects that the functions read, and calls them again after a change.
func NewRun(req *fnv1.RunFunctionRequest) *Run {
	st := &step{}
	o := observed{state: req.GetObserved(), step: st}
	return &Run{req: req, step: st, observed: o, reply: &reply{rsp: response.To(req, 0), earlier: req.GetDesired(), observed: o, step: st}}
}

// Response returns the response for Crossplane.
func (r *Run) Response() *fnv1.RunFunctionResponse {
	r.reply.applyStatus()
	r.reply.pinVersion()
	if r.observed.circuitOpen() {
		r.reply.requeueAfter(openInterval + time.Duration(len(r.observed.state.GetResources()))*openIntervalForChild)
	}
	return r.reply.rsp
}

// Fatal returns a response that ends the pipeline with an error: Crossplane keeps all children
// unchanged, shows the error on the composite, and tries again. Conditions of these types that the
// run has not set become unknown with the error as their message.
func (r *Run) Fatal(err error, types ...xpv2.ConditionType) *fnv1.RunFunctionResponse {
	set := map[string]bool{}
	for _, c := range r.reply.rsp.GetConditions() {
		set[c.GetType()] = true
	}
	for _, t := range types {
		if !set[r.step.conditionType(t)] {
			r.reply.setCondition(Condition{Type: t, Reason: ReasonCannotCompose, Message: err.Error()})
		}
	}
	response.Fatal(r.reply.rsp, err)
	return r.Response()
}

// RequeueInterval is the time after which Crossplane calls again for changes that it may have
// missed. It is needed if more children start at the same time than the circuit breaker permits: a
// change that the circuit breaker drops is not repeated.
const RequeueInterval = time.Minute

// These values limit how long changes of a composite may be missed while Crossplane's circuit
// breaker is open, which lasts five minutes. Each call applies every child, so a composite with
// many children is called less often: at most twenty children are applied per second.
const (
	openInterval         = time.Second
	openIntervalForChild = 50 * time.Millisecond
)

// Composite decodes the observed composite.
func (r *Run) Composite(dst any) error { return r.observed.decodeComposite(dst) }

// Observed decodes the observed child with this resource name. It returns false if there is none.
func (r *Run) Observed(name string, dst any) (bool, error) { return r.observed.decodeChild(name, dst) }

// ObservedChild returns the observed child with a resource name, or nil if there is none.
func ObservedChild[T any](r *Run, name string) (*T, error) {
	o := new(T)
	if ok, err := r.Observed(name, o); err != nil || !ok {
		return nil, err
	}
	return o, nil
}

// ObservedNames returns the resource names of all observed children in no particular order. It
// omits those of other steps of the pipeline.
func (r *Run) ObservedNames() []string { return r.observed.names() }

// ConditionTypes returns the types of the composite's conditions. In a step it returns those of the
// step.
func (r *Run) ConditionTypes() map[xpv2.ConditionType]bool { return r.observed.conditionTypes() }
