// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Reasons of conditions that are unknown.
const (
	// ReasonWaiting means that the state of the condition is not reported yet.
	ReasonWaiting xpv2.ConditionReason = "Waiting"

	// ReasonCannotCompose means that the function failed.
	ReasonCannotCompose xpv2.ConditionReason = "CannotCompose"
)

// A Run is one call of a function: its request and its response. It keeps the desired state of
// earlier functions of the pipeline.
type Run struct {
	req *fnv1.RunFunctionRequest
	rsp *fnv1.RunFunctionResponse

	// status is the status that the run sets. It is nil if the run sets none.
	status *structpb.Struct

	// step is the run's step in a pipeline of another composite. It is nil in a pipeline of the
	// product.
	step *step
}

// NewRun returns a run with an empty response to a request. The response does not expire, unless
// the run sets RequeueAfter or the circuit breaker is open: Crossplane (2.4 and later) watches all
// objects that the functions read, and calls them again after a change.
func NewRun(req *fnv1.RunFunctionRequest) *Run {
	return &Run{req: req, rsp: response.To(req, 0)}
}

// Response returns the response for Crossplane.
func (r *Run) Response() *fnv1.RunFunctionResponse {
	r.applyStatus()
	r.pinVersion()
	if r.circuitOpen() {
		r.RequeueAfter(openInterval + time.Duration(len(r.req.GetObserved().GetResources()))*openIntervalForChild)
	}
	return r.rsp
}

// Fatal returns a response that ends the pipeline with an error: Crossplane keeps all children
// unchanged, shows the error on the composite, and tries again. Conditions of these types that the
// run has not set become unknown with the error as their message.
func (r *Run) Fatal(err error, types ...xpv2.ConditionType) *fnv1.RunFunctionResponse {
	set := map[string]bool{}
	for _, c := range r.rsp.GetConditions() {
		set[c.GetType()] = true
	}
	for _, t := range types {
		if !set[r.conditionType(t)] {
			r.SetCondition(Condition{Type: t, Reason: ReasonCannotCompose, Message: err.Error()})
		}
	}
	response.Fatal(r.rsp, err)
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

// circuitOpen reports whether Crossplane's circuit breaker is open and drops changes.
func (r *Run) circuitOpen() bool {
	c := r.observedConditions()[string(apiextv1.TypeResponsive)]
	return c.GetFields()["status"].GetStringValue() == string(corev1.ConditionFalse)
}

// RequeueAfter makes Crossplane call again after a time at the latest, even without a change.
func (r *Run) RequeueAfter(d time.Duration) {
	if ttl := r.rsp.GetMeta().GetTtl().AsDuration(); ttl == 0 || d < ttl {
		r.rsp.Meta.Ttl = durationpb.New(d)
	}
}

// Composite decodes the observed composite.
func (r *Run) Composite(dst any) error {
	return errors.Wrap(fromStruct(r.req.GetObserved().GetComposite().GetResource(), dst), "cannot read the composite resource")
}

// Observed decodes the observed child with this resource name. It returns false if there is none.
func (r *Run) Observed(name string, dst any) (bool, error) {
	o, ok := r.req.GetObserved().GetResources()[r.resource(name)]
	if !ok {
		return false, nil
	}
	return true, errors.Wrapf(fromStruct(o.GetResource(), dst), "cannot read the composed resource %q", name)
}

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
func (r *Run) ObservedNames() []string {
	names := make([]string, 0, len(r.req.GetObserved().GetResources()))
	for n := range r.req.GetObserved().GetResources() {
		if own, ok := strings.CutPrefix(n, r.resource("")); ok {
			names = append(names, own)
		}
	}
	return names
}

// Desire composes a child. The composite is ready if all its children are.
func (r *Run) Desire(name string, o runtime.Object, ready bool) error {
	s, err := toStruct(o)
	if err != nil {
		return errors.Wrapf(err, "cannot compose resource %q", name)
	}
	if _, exists := r.req.GetDesired().GetResources()[r.resource(name)]; exists && r.step != nil {
		return errors.Errorf("an earlier step composes %q too; give each step of this function another name in its input", r.resource(name))
	}
	r.desire(name, s, ready)
	return nil
}

func (r *Run) desire(name string, s *structpb.Struct, ready bool) {
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
	r.rsp.Desired.Resources[r.resource(name)] = &fnv1.Resource{Resource: s, Ready: rdy}
}

// KeepExisting composes every observed child unchanged and not ready, except those of some resource
// names. It is for a run that lacks an input: Crossplane deletes a child that a function omits.
func (r *Run) KeepExisting(except ...string) error {
	for _, name := range r.ObservedNames() {
		if slices.Contains(except, name) {
			continue
		}
		o := r.req.GetObserved().GetResources()[r.resource(name)].GetResource().AsMap()
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

// carryMetadata removes the fields of an object's metadata that a function may not apply. They
// belong to the API server, to Crossplane, or to a controller.
func carryMetadata(o map[string]any) {
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		return
	}
	out := map[string]any{}
	for _, k := range []string{"name", "namespace"} {
		if v, ok := metadata[k]; ok {
			out[k] = v
		}
	}
	if l := withoutCrossplane(stringMap(metadata["labels"])); l != nil {
		out["labels"] = anyMap(l)
	}
	if a := withoutCrossplane(composedAnnotations(metadata)); a != nil {
		out["annotations"] = anyMap(a)
	}
	// An object that a function composed with a finalizer would lose the finalizer.
	if fs, ok := metadata["finalizers"].([]any); ok && slices.Contains(fs, any(meta.FinalizerManaged)) && metadata["deletionTimestamp"] == nil {
		out["finalizers"] = []any{meta.FinalizerManaged}
	}
	o["metadata"] = out
}

// composedManager is the prefix of the field managers with which Crossplane applies the objects of
// functions (crossplane v2.4 composition_functions.go, FieldOwnerComposedPrefix).
const composedManager = "apiextensions.crossplane.io/composed"

// composedAnnotations returns the annotations that a function composed. Other clients also write
// annotations of children, which a function must not claim.
func composedAnnotations(metadata map[string]any) map[string]string {
	annotations := stringMap(metadata["annotations"])
	out := map[string]string{}
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		e, _ := e.(map[string]any)
		if m, _ := e["manager"].(string); !strings.HasPrefix(m, composedManager) {
			continue
		}
		fields, _, err := unstructured.NestedMap(e, "fieldsV1", "f:metadata", "f:annotations")
		if err != nil {
			continue
		}
		for f := range fields {
			k := strings.TrimPrefix(f, "f:")
			if v, ok := annotations[k]; ok {
				out[k] = v
			}
		}
	}
	return out
}

// stringMap returns the strings in a map.
func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, e := range m {
		if s, ok := e.(string); ok {
			out[k] = s
		}
	}
	return out
}

// anyMap returns a map of strings as a map of any values.
func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// Status sets the composite's status from a struct. It keeps fields that an earlier function of the
// pipeline set and this one did not.
//
// A run that changes a condition leaves the status as observed: the write of the condition runs the
// function again, and that run changes the status. Crossplane applies the status first, with the
// conditions that it knows, and updates the conditions after that. The next apply claims the updated
// conditions for its field manager, which is a write even if nothing else has changed (crossplane v2.4
// composition_functions.go, "cs := xr.GetConditions()"). When one run changes both, that is a third write
// instead of two in all, and each counts against the composite in Crossplane's circuit breaker.
func (r *Run) Status(status any) error {
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

func (r *Run) applyStatus() {
	if r.status == nil {
		return
	}
	if r.step != nil {
		if err := r.applyStepStatus(); err != nil {
			response.Fatal(r.rsp, errors.Wrap(err, "cannot set the status at the input's statusFieldPath"))
		}
		return
	}
	fields := maps.Clone(r.status.GetFields())
	if r.changesConditions() {
		fields = maps.Clone(r.req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields())
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
func (r *Run) applyStepStatus() error {
	path := r.step.status
	if path == nil {
		return nil
	}
	want := r.status.AsMap()
	if r.changesConditions() {
		observed, found, err := unstructured.NestedMap(r.req.GetObserved().GetComposite().GetResource().AsMap(), path...)
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

// ConditionTypes returns the types of the composite's conditions. In a step it returns those of the
// step.
func (r *Run) ConditionTypes() map[xpv2.ConditionType]bool {
	out := map[xpv2.ConditionType]bool{}
	for t := range r.observedConditions() {
		if own, ok := strings.CutPrefix(t, r.conditionType("")); ok {
			out[xpv2.ConditionType(own)] = true
		}
	}
	return out
}

// observedConditions returns the conditions of the composite, by type.
func (r *Run) observedConditions() map[string]*structpb.Struct {
	out := map[string]*structpb.Struct{}
	for _, v := range r.req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		c := v.GetStructValue()
		out[c.GetFields()["type"].GetStringValue()] = c
	}
	return out
}

// changesConditions reports whether the run sets a condition that differs from the composite's.
func (r *Run) changesConditions() bool {
	observed := r.observedConditions()
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
func (r *Run) composite() *structpb.Struct {
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
	observed := r.req.GetObserved().GetComposite().GetResource().GetFields()
	for _, k := range []string{"apiVersion", "kind"} {
		c.Resource.Fields[k] = structpb.NewStringValue(observed[k].GetStringValue())
	}
	return c.GetResource()
}

// NotReady makes the composite not ready even if all its children are, or if it
// has none.
func (r *Run) NotReady() {
	r.composite()
	r.rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
}
