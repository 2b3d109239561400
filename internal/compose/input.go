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

// A step is a run in a pipeline that is not our own: it has an input, and other
// steps compose and observe beside it, some of the same function.
type step struct {
	// resources is the prefix of the names of composed resources.
	resources string

	// conditions is the prefix of condition types.
	conditions string

	// status is the field of the composite to write the status to. Nil if none.
	status []string
}

// Object decodes what the run is about into an object of our kinds. That is the
// composite, unless the step has an input. The input then says the spec, and the
// object has the namespace and labels of the user's object, and its name, to
// which that of the step is added.
func (r *Run) Object(s *InputSchema, into metav1.Object) error {
	if len(r.req.GetInput().GetFields()) == 0 {
		return r.Composite(into)
	}
	return errors.Wrap(r.objectOf(s, into), "cannot use the input of this step")
}

func (r *Run) objectOf(s *InputSchema, into metav1.Object) error {
	loaded, err := s.load()
	if err != nil {
		return err
	}
	in, err := jsonMap(r.req.GetInput())
	if err != nil {
		return err
	}
	// The step is known before anything can fail, because the types of conditions depend on it.
	// An invalid name is refused below.
	name, ok := in["name"].(string)
	if !ok || len(validation.IsDNS1123Label(name)) > 0 {
		name = ""
	}
	r.step = newStep(loaded.kind, name)

	composite, err := jsonMap(r.req.GetObserved().GetComposite().GetResource())
	if err != nil {
		return err
	}
	if in, err = patched(in, composite); err != nil {
		return err
	}
	if err := loaded.check(in); err != nil {
		return err
	}

	common := struct {
		functionv1alpha1.Step `json:",inline"`

		Labels map[string]string `json:"labels,omitempty"`
	}{}
	if err := convert(in, &common); err != nil {
		return err
	}
	if p := common.StatusFieldPath; p != "" {
		r.step.status = strings.Split(p, ".")
	}
	xr := &metav1.PartialObjectMetadata{}
	if err := r.Composite(xr); err != nil {
		return err
	}
	if err := convert(map[string]any{"spec": in["spec"]}, into); err != nil {
		return err
	}
	owner := OwnerOf(xr)
	into.SetName(owner.Name)
	if common.Name != "" {
		into.SetName(names.Child(owner.Name, common.Name))
	}
	into.SetNamespace(owner.Namespace)
	labels := map[string]string{}
	maps.Copy(labels, owner.Labels)
	maps.Copy(labels, common.Labels)
	into.SetLabels(labels)
	return nil
}

// HasInput reports whether the run is a step of a pipeline that is not our own. The
// API server has not seen the change that led to an input, so rules on changes
// are for the function to keep.
func (r *Run) HasInput() bool { return r.step != nil }

// KindOf returns the kind that a step composes: that of its input without "Input", or that of
// the composite, which for a claim begins with X.
func KindOf(req *fnv1.RunFunctionRequest) string {
	if in := req.GetInput().GetFields(); len(in) > 0 {
		return strings.TrimSuffix(in["kind"].GetStringValue(), inputSuffix)
	}
	kind := req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue()
	if claimed, ok := strings.CutPrefix(kind, "X"); ok {
		return claimed
	}
	return kind
}

// newStep returns the step of the function that takes this kind of input. Names of steps have
// neither dot nor slash, so no prefix is the start of another.
func newStep(kind, name string) *step {
	function := strings.ToLower(strings.TrimSuffix(kind, inputSuffix))
	if name == "" {
		return &step{resources: function + "."}
	}
	return &step{resources: function + "-" + name + ".", conditions: name + "/"}
}

// resource returns the name of a composed resource among those of all steps.
func (r *Run) resource(name string) string {
	if r.step == nil {
		return name
	}
	return r.step.resources + name
}

// conditionType returns the type of a condition among those of all steps.
func (r *Run) conditionType(t xpv2.ConditionType) string {
	if r.step == nil {
		return string(t)
	}
	return r.step.conditions + string(t)
}

// patched returns an input with what it copies from the composite.
func patched(in, composite map[string]any) (map[string]any, error) {
	step := functionv1alpha1.Step{}
	if err := convert(map[string]any{"patches": in["patches"]}, &step); err != nil {
		return nil, err
	}
	from, to := fieldpath.Pave(composite), fieldpath.Pave(in)
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
	// Values that were set have lost which numbers are whole.
	out := map[string]any{}
	return out, convert(to.UnstructuredContent(), &out)
}

// jsonMap returns a struct as a map in which whole numbers are integers, as in what the API
// server decodes.
func jsonMap(s *structpb.Struct) (map[string]any, error) {
	j, err := protojson.Marshal(s)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode a struct")
	}
	m := map[string]any{}
	return m, errors.Wrap(utiljson.Unmarshal(j, &m), "cannot decode a struct")
}

// convert decodes the JSON of a value into another one.
func convert(from, into any) error {
	j, err := json.Marshal(from)
	if err != nil {
		return errors.Wrap(err, "cannot encode it")
	}
	return errors.Wrap(utiljson.Unmarshal(j, into), "cannot decode it")
}
