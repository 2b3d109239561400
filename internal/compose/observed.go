// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// observed is what Crossplane has observed of a composite and its children. Of these, it has those of
// one step.
type observed struct {
	state *fnv1.State
	step  *step
}

// composite returns the composite.
func (o observed) composite() *structpb.Struct { return o.state.GetComposite().GetResource() }

// decodeComposite decodes the composite.
func (o observed) decodeComposite(dst any) error {
	return errors.Wrap(fromStruct(o.composite(), dst), "cannot read the composite resource")
}

// decodeChild decodes the child with a resource name. It returns false if there is none.
func (o observed) decodeChild(name string, dst any) (bool, error) {
	child, ok := o.state.GetResources()[o.step.resource(name)]
	if !ok {
		return false, nil
	}
	return true, errors.Wrapf(fromStruct(child.GetResource(), dst), "cannot read the composed resource %q", name)
}

// names returns the resource names of all children, in no particular order.
func (o observed) names() []string {
	names := make([]string, 0, len(o.state.GetResources()))
	for n := range o.state.GetResources() {
		if own, ok := strings.CutPrefix(n, o.step.resource("")); ok {
			names = append(names, own)
		}
	}
	return names
}

// conditionTypes returns the types of the composite's conditions.
func (o observed) conditionTypes() map[xpv2.ConditionType]bool {
	out := map[xpv2.ConditionType]bool{}
	for t := range o.conditions() {
		if own, ok := strings.CutPrefix(t, o.step.conditionType("")); ok {
			out[xpv2.ConditionType(own)] = true
		}
	}
	return out
}

// conditions returns the conditions of the composite by type, those of all steps.
func (o observed) conditions() map[string]*structpb.Struct {
	out := map[string]*structpb.Struct{}
	for _, v := range o.composite().GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		c := v.GetStructValue()
		out[c.GetFields()["type"].GetStringValue()] = c
	}
	return out
}

// circuitOpen reports whether Crossplane's circuit breaker is open and drops changes.
func (o observed) circuitOpen() bool {
	c := o.conditions()[string(apiextv1.TypeResponsive)]
	return c.GetFields()["status"].GetStringValue() == string(corev1.ConditionFalse)
}
