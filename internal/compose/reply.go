// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// A reply is the response of a run, as it is written. It keeps the desired state of earlier functions
// of the pipeline.
type reply struct {
	rsp *fnv1.RunFunctionResponse

	// status is the status that the run sets. It is nil if the run sets none.
	status *structpb.Struct

	// earlier is the desired state of earlier functions.
	earlier *fnv1.State

	observed observed
	step     *step
}

// requeueAfter makes Crossplane call again after a time at the latest, even without a change.
func (r *reply) requeueAfter(d time.Duration) {
	if ttl := r.rsp.GetMeta().GetTtl().AsDuration(); ttl == 0 || d < ttl {
		r.rsp.Meta.Ttl = durationpb.New(d)
	}
}

// compose composes a child. The composite is ready if all its children are.
func (r *reply) compose(name string, o runtime.Object, ready bool) error {
	s, err := toStruct(o)
	if err != nil {
		return errors.Wrapf(err, "cannot compose resource %q", name)
	}
	if _, exists := r.earlier.GetResources()[r.step.resource(name)]; exists && r.step.hasInput {
		return errors.Errorf("an earlier step composes %q too; give each step of this function another name in its input", r.step.resource(name))
	}
	r.desire(name, s, ready)
	return nil
}

// desire adds a child to the response.
func (r *reply) desire(name string, s *structpb.Struct, ready bool) {
	if r.rsp.GetDesired() == nil {
		r.rsp.Desired = &fnv1.State{}
	}
	if r.rsp.GetDesired().GetResources() == nil {
		r.rsp.Desired.Resources = map[string]*fnv1.Resource{}
	}
	rdy := fnv1.Ready_READY_FALSE
	if ready {
		rdy = fnv1.Ready_READY_TRUE
	}
	r.rsp.Desired.Resources[r.step.resource(name)] = &fnv1.Resource{Resource: s, Ready: rdy}
}

// keepExisting composes every observed child unchanged and not ready, except those of some resource
// names. It is for a run that lacks an input: Crossplane deletes a child that a function omits.
func (r *reply) keepExisting(except ...string) error {
	for _, name := range r.observed.names() {
		if slices.Contains(except, name) {
			continue
		}
		o := r.observed.state.GetResources()[r.step.resource(name)].GetResource().AsMap()
		delete(o, "status")
		carryMetadata(o)
		s, err := structpb.NewStruct(o)
		if err != nil {
			return errors.Wrapf(err, "cannot carry over the composed resource %q", name)
		}
		r.desire(name, s, false)
	}
	return nil
}

// setStatus sets the composite's status from a struct. It keeps fields that an earlier function of the
// pipeline set and this one did not.
//
// A run that changes a condition leaves the status as observed: the write of the condition runs the
// function again, and that run changes the status. Crossplane applies the status first, with the
// conditions that it knows, and updates the conditions after that. The next apply claims the updated
// conditions for its field manager, which is a write even if nothing else has changed (crossplane v2.4
// composition_functions.go, "cs := xr.GetConditions()"). When one run changes both, that is a third write
// instead of two in all, and each counts against the composite in Crossplane's circuit breaker.
func (r *reply) setStatus(status any) error {
	m, err := toMap(status)
	if err != nil {
		return errors.Wrap(err, "cannot set the composite resource's status")
	}
	dropNulls(m)
	// Conditions are set separately.
	delete(m, "conditions")
	s, err := structpb.NewStruct(m)
	if err != nil {
		return errors.Wrap(err, "cannot set the composite resource's status")
	}
	r.status = s
	return nil
}

// crossplaneStatus are the fields of a composite's status that belong to Crossplane.
var crossplaneStatus = []string{"conditions", "claimConditionTypes", "connectionDetails", "crossplane"}

// applyStatus writes the status to the response.
func (r *reply) applyStatus() {
	if r.status == nil {
		return
	}
	if r.step.hasInput {
		if err := r.applyStepStatus(); err != nil {
			response.Fatal(r.rsp, errors.Wrap(err, "cannot set the status at the input's statusFieldPath"))
		}
		return
	}
	fields := maps.Clone(r.status.GetFields())
	if r.changesConditions() {
		fields = maps.Clone(r.observed.composite().GetFields()["status"].GetStructValue().GetFields())
		for _, f := range crossplaneStatus {
			delete(fields, f)
		}
	}

	c := r.composite()
	if old := c.GetFields()["status"].GetStructValue(); old != nil {
		all := maps.Clone(old.GetFields())
		maps.Copy(all, fields)
		fields = all
	}
	if len(fields) > 0 {
		c.Fields["status"] = structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
}

// applyStepStatus sets the field that the input names.
func (r *reply) applyStepStatus() error {
	path := r.step.status
	if path == nil {
		return nil
	}
	want := r.status.AsMap()
	if r.changesConditions() {
		observed, found, err := unstructured.NestedMap(r.observed.composite().AsMap(), path...)
		if err != nil {
			return err
		}
		if !found {
			return nil
		}
		want = observed
	}
	c := r.composite()
	m := c.AsMap()
	if err := unstructured.SetNestedMap(m, want, path...); err != nil {
		return err
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		return err
	}
	c.Fields = s.GetFields()
	return nil
}

// changesConditions reports whether the run sets a condition that differs from the composite's.
func (r *reply) changesConditions() bool {
	observed := r.observed.conditions()
	for _, c := range r.rsp.GetConditions() {
		o := observed[c.GetType()].GetFields()
		if o["status"].GetStringValue() != statusName(c.GetStatus()) || o["reason"].GetStringValue() != c.GetReason() || o["message"].GetStringValue() != c.GetMessage() {
			return true
		}
	}
	return false
}

// statusName returns the Kubernetes name of a condition's status.
func statusName(s fnv1.Status) string {
	switch s {
	case fnv1.Status_STATUS_CONDITION_TRUE:
		return string(corev1.ConditionTrue)
	case fnv1.Status_STATUS_CONDITION_FALSE:
		return string(corev1.ConditionFalse)
	case fnv1.Status_STATUS_CONDITION_UNKNOWN, fnv1.Status_STATUS_CONDITION_UNSPECIFIED:
	}
	return string(corev1.ConditionUnknown)
}

// composite returns the composite of the response, with the kind that Crossplane expects.
func (r *reply) composite() *structpb.Struct {
	if r.rsp.GetDesired() == nil {
		r.rsp.Desired = &fnv1.State{}
	}
	if r.rsp.GetDesired().GetComposite() == nil {
		r.rsp.Desired.Composite = &fnv1.Resource{}
	}
	c := r.rsp.GetDesired().GetComposite()
	if c.GetResource().GetFields() == nil {
		c.Resource = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	observed := r.observed.composite().GetFields()
	for _, k := range []string{"apiVersion", "kind"} {
		c.Resource.Fields[k] = structpb.NewStringValue(observed[k].GetStringValue())
	}
	return c.GetResource()
}

// notReady makes the composite not ready even if all its children are, or if it
// has none.
func (r *reply) notReady() {
	r.composite()
	r.rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
}
