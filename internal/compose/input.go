// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	functionv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/function/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// inputSuffix ends the kinds of inputs.
const inputSuffix = "Input"

// A step is a run in a pipeline of another composite: it has an input, and other steps also compose
// and observe resources, some with the same function.
type step struct {
	// hasInput is false in a pipeline of the product.
	hasInput bool

	// resources is the prefix of the names of composed resources.
	resources string

	// conditions is the prefix of condition types.
	conditions string

	// status is the field of the composite for the status. It is nil if there is none.
	status []string
}

// Object decodes the object of a run. This is the composite, unless the step has an input. Then the
// spec is that of the input, the namespace and labels are those of the user's object, and the name
// is that of the user's object with the step's name appended.
func (r *Run) Object(s *InputSchema, dst metav1.Object) error {
	if len(r.req.GetInput().GetFields()) == 0 {
		return r.Composite(dst)
	}
	return errors.Wrap(r.objectOf(s, dst), "cannot use the input of this step")
}

func (r *Run) objectOf(s *InputSchema, dst metav1.Object) error {
	loaded, err := s.load()
	if err != nil {
		return err
	}
	input, err := jsonMap(r.req.GetInput())
	if err != nil {
		return err
	}
	// Set the step before an error can occur, because the types of conditions depend on it. An
	// invalid name is rejected below.
	name, ok := input["name"].(string)
	if !ok || len(validation.IsDNS1123Label(name)) > 0 {
		name = ""
	}
	*r.step = newStep(loaded.kind, name)

	composite, err := jsonMap(r.req.GetObserved().GetComposite().GetResource())
	if err != nil {
		return err
	}
	if input, err = patched(input, composite); err != nil {
		return err
	}
	if err := loaded.check(input); err != nil {
		return err
	}

	common := struct {
		functionv1alpha1.Step `json:",inline"`

		Labels map[string]string `json:"labels,omitempty"`
	}{}
	if err := convert(input, &common); err != nil {
		return err
	}
	if p := common.StatusFieldPath; p != "" {
		r.step.status = strings.Split(p, ".")
	}
	xr := &metav1.PartialObjectMetadata{}
	if err := r.Composite(xr); err != nil {
		return err
	}
	if err := convert(map[string]any{"spec": input["spec"]}, dst); err != nil {
		return err
	}
	owner := OwnerOf(xr)
	dst.SetName(owner.Name)
	if common.Name != "" {
		dst.SetName(names.Child(owner.Name, common.Name))
	}
	dst.SetNamespace(owner.Namespace)
	labels := map[string]string{}
	maps.Copy(labels, owner.Labels)
	maps.Copy(labels, common.Labels)
	dst.SetLabels(labels)
	return nil
}

// HasInput reports whether the run is a step of another composite's pipeline. The API server has
// not validated changes of an input, so the function must check rules for changes.
func (r *Run) HasInput() bool { return r.step.hasInput }

// KindOf returns the kind that a step composes: that of its input without "Input", or that of the
// composite, which for a claim begins with X.
func KindOf(req *fnv1.RunFunctionRequest) string {
	if input := req.GetInput().GetFields(); len(input) > 0 {
		return strings.TrimSuffix(input["kind"].GetStringValue(), inputSuffix)
	}
	kind := req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue()
	if claimed, ok := strings.CutPrefix(kind, "X"); ok {
		return claimed
	}
	return kind
}

// newStep returns the step of the function with this kind of input. Names of steps have neither dot
// nor slash, so no prefix is the start of another.
func newStep(kind, name string) step {
	function := strings.ToLower(strings.TrimSuffix(kind, inputSuffix))
	if name == "" {
		return step{hasInput: true, resources: function + "."}
	}
	return step{hasInput: true, resources: function + "-" + name + ".", conditions: name + "/"}
}

// resource returns the name of a composed resource among those of all steps.
func (s *step) resource(name string) string { return s.resources + name }

// conditionType returns the type of a condition among those of all steps.
func (s *step) conditionType(t xpv2.ConditionType) string { return s.conditions + string(t) }

// patched returns an input with the values that it copies from the composite.
func patched(input, composite map[string]any) (map[string]any, error) {
	step := functionv1alpha1.Step{}
	if err := convert(map[string]any{"patches": input["patches"]}, &step); err != nil {
		return nil, err
	}
	from, to := fieldpath.Pave(composite), fieldpath.Pave(input)
	for i, p := range step.Patches {
		v, err := from.GetValue(p.FromFieldPath)
		if fieldpath.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, errors.Wrapf(err, "patches[%d].fromFieldPath", i)
		}
		if p.Format != "" {
			v = strings.ReplaceAll(p.Format, "%s", fmt.Sprint(v))
		}
		if err := to.SetValue(p.ToFieldPath, v); err != nil {
			return nil, errors.Wrapf(err, "patches[%d].toFieldPath", i)
		}
	}
	// The values that were set have lost whether numbers are integers.
	out := map[string]any{}
	return out, convert(to.UnstructuredContent(), &out)
}

// jsonMap returns a struct as a map in which whole numbers are integers, like in objects that the
// API server decodes.
func jsonMap(s *structpb.Struct) (map[string]any, error) {
	j, err := protojson.Marshal(s)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode a struct")
	}
	m := map[string]any{}
	return m, errors.Wrap(utiljson.Unmarshal(j, &m), "cannot decode a struct")
}

// convert converts a value to another type through JSON.
func convert(src, dst any) error {
	j, err := json.Marshal(src)
	if err != nil {
		return errors.Wrap(err, "cannot encode it")
	}
	return errors.Wrap(utiljson.Unmarshal(j, dst), "cannot decode it")
}
