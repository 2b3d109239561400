// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Plan is the desired state of a composite. Functions read facts from a request, make a plan only
// from the facts, and render the plan to the response.
type Plan struct {
	// Conditions are the conditions of the object that the user wrote, in order.
	Conditions []Condition

	// Status is the status of the composite, a struct. Nil leaves the status unchanged.
	Status any

	// NotReady makes the composite not ready even if all its children are, or if it has none.
	NotReady bool

	// RequeueAfter makes Crossplane call the function again after a time at the latest, even without a
	// change. Zero waits for a change.
	RequeueAfter time.Duration

	// KeepExisting composes the observed children unchanged instead of Children.
	KeepExisting bool

	// Except are the resource names of observed children that KeepExisting omits.
	Except []string

	// Children are the desired children. Crossplane deletes observed children that are missing
	// here.
	Children []Child
}

// A Child is an object that is composed with a resource name.
type Child struct {
	Name   string
	Object runtime.Object

	// Ready reports whether the object is ready. The composite is ready once all its children are.
	Ready bool
}

// Children are a part of the desired children of a plan.
type Children struct {
	Wanted []Child

	// Incomplete means that a child is missing or not ready, in addition to those in Wanted.
	Incomplete bool

	// Requeue means that Crossplane should call the function again after a minute, because its
	// circuit breaker may drop changes of so many children.
	Requeue bool
}

// Add appends a child.
func (c *Children) Add(name string, o runtime.Object, ready bool) {
	c.Wanted = append(c.Wanted, Child{Name: name, Object: o, Ready: ready})
}

// Add adds parts of the desired children.
func (p *Plan) Add(parts ...Children) {
	for _, c := range parts {
		p.Children = append(p.Children, c.Wanted...)
		p.NotReady = p.NotReady || c.Incomplete
		if c.Requeue {
			p.RequeueAfter = RequeueInterval
		}
	}
}

// Wait returns the plan of a run that lacks an input: conditions of these types are unknown, with a
// message for the user, and the children stay unchanged.
func Wait(message string, types ...xpv2.ConditionType) Plan {
	p := Plan{KeepExisting: true}
	for _, t := range types {
		p.Conditions = append(p.Conditions, Condition{Type: t, Reason: ReasonWaiting, Message: message})
	}
	return p
}

// Render writes the plan to the response of a run.
func (p Plan) Render(r *Run) error {
	for _, c := range p.Conditions {
		r.reply.setCondition(c)
	}
	if p.NotReady {
		r.reply.notReady()
	}
	if p.Status != nil {
		if err := r.reply.setStatus(p.Status); err != nil {
			return err
		}
	}
	if p.RequeueAfter != 0 {
		r.reply.requeueAfter(p.RequeueAfter)
	}
	if p.KeepExisting {
		return r.reply.keepExisting(p.Except...)
	}
	for _, c := range p.Children {
		if err := r.reply.compose(c.Name, c.Object, c.Ready); err != nil {
			return err
		}
	}
	return nil
}
