// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composetest

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// requestTag is the tag of every request.
const requestTag = "tag"

// A cluster is the input of a function's calls.
type cluster struct {
	composite *structpb.Struct

	// input is the input of the step. It is nil in a pipeline of the product.
	input *structpb.Struct

	// desired is the desired state of earlier steps. It is nil if there are none.
	desired *fnv1.State

	observed map[string]*structpb.Struct
	objects  []*structpb.Struct
}

// call calls a function as Crossplane does: repeatedly with the required objects, until the
// requirements no longer change. A fatal result ends it.
func (c *cluster) call(t *testing.T, fn fnv1.FunctionRunnerServiceServer) *fnv1.RunFunctionResponse {
	t.Helper()
	var wants *fnv1.Requirements
	for range maxCalls {
		rsp := c.callOnce(t, fn, wants)
		for _, r := range rsp.GetResults() {
			if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
				return rsp
			}
		}
		if proto.Equal(wants, rsp.GetRequirements()) || rsp.GetRequirements() == nil && wants == nil {
			return rsp
		}
		wants = rsp.GetRequirements()
	}
	t.Fatalf("the function's requirements did not settle in %d calls", maxCalls)
	return nil
}

// settle calls a function until the composite's conditions and status no longer change, as
// Crossplane does. It fails the test if one call changes both conditions and status, or if they
// keep changing.
func (c *cluster) settle(t *testing.T, fn fnv1.FunctionRunnerServiceServer) *fnv1.RunFunctionResponse {
	t.Helper()
	first := c.call(t, fn)
	settled := c.with(withConditions(c.composite, first.GetConditions()), c.objects)
	rsp := settled.call(t, fn)
	if !proto.Equal(&fnv1.RunFunctionResponse{Conditions: first.GetConditions()}, &fnv1.RunFunctionResponse{Conditions: rsp.GetConditions()}) {
		t.Error("the function's conditions depend on those that it set before")
	}
	for _, r := range first.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return rsp
		}
	}
	if status := field(first.GetDesired().GetComposite().GetResource(), "status"); status != nil && field(c.composite, "status") == nil {
		t.Errorf("the first call sets conditions and status both, which costs a further write of the composite: %v", status)
	}
	for range maxCalls {
		settled = settled.with(withStatus(withConditions(settled.composite, rsp.GetConditions()), rsp), settled.objects)
		next := settled.call(t, fn)
		if proto.Equal(rsp, next) {
			return rsp
		}
		rsp = next
	}
	t.Errorf("conditions and status did not settle in %d runs", maxCalls)
	return rsp
}

// with returns a cluster with another composite and other objects.
func (c *cluster) with(composite *structpb.Struct, objects []*structpb.Struct) *cluster {
	return &cluster{composite: composite, input: c.input, desired: c.desired, observed: c.observed, objects: objects}
}

// owns reports whether an observed composed resource belongs to the step: a function does not
// change those of other steps.
func (c *cluster) owns(name string) bool {
	if c.input == nil {
		return true
	}
	prefix := strings.ToLower(strings.TrimSuffix(field(c.input, "kind").GetStringValue(), "Input"))
	if n := field(c.input, "name").GetStringValue(); n != "" {
		prefix += "-" + n
	}
	return strings.HasPrefix(name, prefix+".")
}

// withConditions returns the composite with conditions in addition to its own.
func withConditions(composite *structpb.Struct, conditions []*fnv1.Condition) *structpb.Struct {
	names := map[fnv1.Status]string{
		fnv1.Status_STATUS_CONDITION_TRUE:    "True",
		fnv1.Status_STATUS_CONDITION_FALSE:   "False",
		fnv1.Status_STATUS_CONDITION_UNKNOWN: "Unknown",
	}
	set := map[string]bool{}
	for _, c := range conditions {
		set[c.GetType()] = true
	}
	l := &structpb.ListValue{}
	for _, c := range field(composite, "status", "conditions").GetListValue().GetValues() {
		if !set[field(c.GetStructValue(), "type").GetStringValue()] {
			l.Values = append(l.Values, c)
		}
	}
	for _, c := range conditions {
		l.Values = append(l.Values, structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"type":    structpb.NewStringValue(c.GetType()),
			"status":  structpb.NewStringValue(names[c.GetStatus()]),
			"reason":  structpb.NewStringValue(c.GetReason()),
			"message": structpb.NewStringValue(c.GetMessage()),
		}}))
	}
	out := proto.CloneOf(composite)
	statusFields(out)["conditions"] = structpb.NewListValue(l)
	return out
}

// withStatus returns the composite with the status of a response, and with its own conditions.
func withStatus(composite *structpb.Struct, rsp *fnv1.RunFunctionResponse) *structpb.Struct {
	out := proto.CloneOf(composite)
	status := statusFields(out)
	for k, v := range field(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue().GetFields() {
		if k != "conditions" {
			status[k] = v
		}
	}
	return out
}

// statusFields returns the fields of a composite's status in a form that can be set.
func statusFields(xr *structpb.Struct) map[string]*structpb.Value {
	s := xr.GetFields()["status"].GetStructValue()
	if s.GetFields() == nil {
		s = &structpb.Struct{Fields: map[string]*structpb.Value{}}
		xr.Fields["status"] = structpb.NewStructValue(s)
	}
	return s.GetFields()
}

// callOnce calls a function with the objects that it required before.
func (c *cluster) callOnce(t *testing.T, fn fnv1.FunctionRunnerServiceServer, wants *fnv1.Requirements) *fnv1.RunFunctionResponse {
	t.Helper()
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Tag: requestTag},
		Input:             proto.CloneOf(c.input),
		Desired:           proto.CloneOf(c.desired),
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: proto.CloneOf(c.composite)}, Resources: map[string]*fnv1.Resource{}},
		RequiredResources: map[string]*fnv1.Resources{},
	}
	for n, o := range c.observed {
		req.Observed.Resources[n] = &fnv1.Resource{Resource: proto.CloneOf(o)}
	}
	for key, s := range wants.GetResources() {
		req.RequiredResources[key] = c.find(s)
	}
	rsp, err := fn.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return rsp
}

// find returns the objects that a requirement selects.
func (c *cluster) find(s *fnv1.ResourceSelector) *fnv1.Resources {
	out := &fnv1.Resources{}
	for _, o := range c.objects {
		if matches(s, o) {
			out.Items = append(out.Items, &fnv1.Resource{Resource: proto.CloneOf(o)})
		}
	}
	return out
}

// matches reports whether a requirement selects an object.
func matches(s *fnv1.ResourceSelector, o *structpb.Struct) bool {
	if s.GetApiVersion() != field(o, "apiVersion").GetStringValue() || s.GetKind() != field(o, "kind").GetStringValue() {
		return false
	}
	if s.Namespace != nil && s.GetNamespace() != field(o, "metadata", "namespace").GetStringValue() {
		return false
	}
	if n := s.GetMatchName(); n != "" {
		return n == field(o, "metadata", "name").GetStringValue()
	}
	for k, v := range s.GetMatchLabels().GetLabels() {
		if field(o, "metadata", "labels", k).GetStringValue() != v {
			return false
		}
	}
	return true
}

// field returns the value at a path. It is nil, which reads as empty, if there is none.
func field(s *structpb.Struct, path ...string) *structpb.Value {
	v := structpb.NewStructValue(s)
	for _, p := range path {
		v = v.GetStructValue().GetFields()[p]
	}
	return v
}
