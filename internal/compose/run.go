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
	// ReasonWaiting means that what a condition is about is not reported yet.
	ReasonWaiting xpv2.ConditionReason = "Waiting"

	// ReasonCannotCompose means that the function failed.
	ReasonCannotCompose xpv2.ConditionReason = "CannotCompose"
)

// A Run is one call of a function: its request, and the response so far. What
// earlier functions of the pipeline wanted is kept.
type Run struct {
	req *fnv1.RunFunctionRequest
	rsp *fnv1.RunFunctionResponse

	// status that the run wants. Nil if it says nothing of it.
	status *structpb.Struct

	// step that the run is in a pipeline that is not our own. Nil in our own.
	step *step
}

// NewRun starts a response to a request. The response never expires, unless the run
// says LookAgain or the circuit breaker is open: Crossplane watches all that our
// functions read (2.4 and later), and calls again when some of it changes.
func NewRun(req *fnv1.RunFunctionRequest) *Run {
	return &Run{req: req, rsp: response.To(req, 0)}
}

// Response to return to Crossplane.
func (r *Run) Response() *fnv1.RunFunctionResponse {
	r.applyStatus()
	if r.deaf() {
		r.lookAgainWithin(deafFor + time.Duration(len(r.req.GetObserved().GetResources()))*deafForChild)
	}
	return r.rsp
}

// Fatal ends the pipeline with an error: Crossplane keeps all children as they
// are, shows the error on the composite, and tries again. Conditions of these
// types that the run has not set become unknown and carry the error.
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

// lookAgainAfter is when Crossplane calls again for what it may not have told.
const lookAgainAfter = time.Minute

// LookAgain has Crossplane call again after a minute, whatever changes. It is for a
// composite of which more children come up at a time than the circuit breaker lets
// tell of themselves: what that drops is not told again.
func (r *Run) LookAgain() { r.lookAgainWithin(lookAgainAfter) }

// How long what happens to a composite may be missed while Crossplane's circuit
// breaker is open, which it is for five minutes. Each call applies every child, so
// those of many are rarer: twenty children are applied a second at most.
const (
	deafFor      = time.Second
	deafForChild = 50 * time.Millisecond
)

// deaf reports whether Crossplane's circuit breaker is open, and drops what is new.
func (r *Run) deaf() bool {
	c := r.observedConditions()[string(apiextv1.TypeResponsive)]
	return c.GetFields()["status"].GetStringValue() == string(corev1.ConditionFalse)
}

// lookAgainWithin a time, or sooner if something else asks for it.
func (r *Run) lookAgainWithin(d time.Duration) {
	if ttl := r.rsp.GetMeta().GetTtl().AsDuration(); ttl == 0 || d < ttl {
		r.rsp.Meta.Ttl = durationpb.New(d)
	}
}

// Composite decodes the observed composite.
func (r *Run) Composite(into any) error {
	return errors.Wrap(fromStruct(r.req.GetObserved().GetComposite().GetResource(), into), "cannot read the composite resource")
}

// Observed decodes the observed child of this resource name. It returns false if
// there is none.
func (r *Run) Observed(name string, into any) (bool, error) {
	o, ok := r.req.GetObserved().GetResources()[r.resource(name)]
	if !ok {
		return false, nil
	}
	return true, errors.Wrapf(fromStruct(o.GetResource(), into), "cannot read the composed resource %q", name)
}

// ObservedNames are the resource names of all observed children, in no order.
// Those of other steps of the pipeline are not among them.
func (r *Run) ObservedNames() []string {
	names := make([]string, 0, len(r.req.GetObserved().GetResources()))
	for n := range r.req.GetObserved().GetResources() {
		if own, ok := strings.CutPrefix(n, r.resource("")); ok {
			names = append(names, own)
		}
	}
	return names
}

// Desire composes a child. Its readiness is what the composite's is made of.
func (r *Run) Desire(name string, o runtime.Object, ready bool) error {
	s, err := toStruct(o)
	if err != nil {
		return errors.Wrapf(err, "cannot compose resource %q", name)
	}
	if _, taken := r.req.GetDesired().GetResources()[r.resource(name)]; taken && r.step != nil {
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

// CarryOver composes every observed child as it is, not ready. It is for a run
// that lacks an input: Crossplane deletes a child that a function leaves out.
func (r *Run) CarryOver() error {
	for _, name := range r.ObservedNames() {
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

// carryMetadata leaves of an object's metadata what a function may say of it. The
// rest is the API server's, Crossplane's, or a controller's.
func carryMetadata(o map[string]any) {
	in, ok := o["metadata"].(map[string]any)
	if !ok {
		return
	}
	out := map[string]any{}
	for _, k := range []string{"name", "namespace"} {
		if v, ok := in[k]; ok {
			out[k] = v
		}
	}
	if l := withoutCrossplane(stringMap(in["labels"])); l != nil {
		out["labels"] = anyMap(l)
	}
	if a := withoutCrossplane(composedAnnotations(in)); a != nil {
		out["annotations"] = anyMap(a)
	}
	// What a function composed with a finalizer would lose it.
	if fs, ok := in["finalizers"].([]any); ok && slices.Contains(fs, any(meta.FinalizerManaged)) && in["deletionTimestamp"] == nil {
		out["finalizers"] = []any{meta.FinalizerManaged}
	}
	o["metadata"] = out
}

// composedManager begins the names of the field managers by which Crossplane applies what
// functions compose (crossplane v2.4 composition_functions.go, FieldOwnerComposedPrefix).
const composedManager = "apiextensions.crossplane.io/composed"

// composedAnnotations are those that a function composed. Others write annotations of
// children, too, which would be taken back from them.
func composedAnnotations(metadata map[string]any) map[string]string {
	have := stringMap(metadata["annotations"])
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
			if v, ok := have[k]; ok {
				out[k] = v
			}
		}
	}
	return out
}

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

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// Status sets the composite's status from a struct. Fields that an earlier
// function of the pipeline set, and this one has not, are kept.
//
// A run that changes a condition leaves the status as it is observed: the
// condition's own write runs the function again, and that run changes the
// status. Crossplane writes the status first, with the conditions that its cache
// had, and the conditions after that. When one run changes both, the next one
// reads a cache that is one write behind, takes the conditions back and sets them
// again: five writes for two, each of which counts against the composite in
// Crossplane's circuit breaker (crossplane v2.4 composition_functions.go:732).
func (r *Run) Status(status any) error {
	m, err := toMap(status)
	if err != nil {
		return errors.Wrap(err, "cannot set the composite resource's status")
	}
	dropNulls(m)
	// Conditions have a way of their own.
	delete(m, "conditions")
	s, err := structpb.NewStruct(m)
	if err != nil {
		return errors.Wrap(err, "cannot set the composite resource's status")
	}
	r.status = s
	return nil
}

// crossplaneStatus are fields of a composite's status that are Crossplane's.
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

// HasCondition reports whether the composite has a condition of this type.
func (r *Run) HasCondition(t xpv2.ConditionType) bool {
	_, has := r.observedConditions()[r.conditionType(t)]
	return has
}

// observedConditions of the composite, by type.
func (r *Run) observedConditions() map[string]*structpb.Struct {
	out := map[string]*structpb.Struct{}
	for _, v := range r.req.GetObserved().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		c := v.GetStructValue()
		out[c.GetFields()["type"].GetStringValue()] = c
	}
	return out
}

// changesConditions reports whether the run sets a condition that the composite
// does not have like that.
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

// statusName is a condition's status as Kubernetes writes it.
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

// composite of the response, with the kind that Crossplane wants there.
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
