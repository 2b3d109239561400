// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package restore

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
)

// resourceName is Crossplane's annotation with the name of a composed resource in its function.
const resourceName = "crossplane.io/composition-resource-name"

// A composite is an object that a function composes, as Crossplane does it. A restored composite
// has no references, so the function observes none of its earlier children.
type composite struct {
	*cluster

	object *unstructured.Unstructured
	fn     fnv1.FunctionRunnerServiceServer

	// children are the composed resources by resource name.
	children map[string]*unstructured.Unstructured
}

// compose creates an object, and returns it as a composite.
func (c *cluster) compose(o *unstructured.Unstructured, fn fnv1.FunctionRunnerServiceServer) *composite {
	c.Helper()
	o = o.DeepCopy()
	c.must(c.kube.Create(c.Context(), o))
	return &composite{cluster: c, object: o, fn: fn, children: map[string]*unstructured.Unstructured{}}
}

// reconcile runs the function once and applies its children.
func (x *composite) reconcile() error {
	if err := x.kube.Get(x.Context(), client.ObjectKeyFromObject(x.object), x.object); err != nil {
		return err
	}
	for _, o := range x.children {
		if err := x.kube.Get(x.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
	}
	rsp, err := x.call()
	if err != nil {
		return err
	}
	for name, r := range rsp.GetDesired().GetResources() {
		o := &unstructured.Unstructured{}
		if err := resource.AsObject(r.GetResource(), o); err != nil {
			return err
		}
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["crossplane.io/composite"] = x.object.GetName()
		o.SetLabels(labels)
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[resourceName] = name
		o.SetAnnotations(annotations)
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(x.object, x.object.GroupVersionKind())})
		if err := x.kube.Apply(x.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("composed"), client.ForceOwnership); err != nil {
			return errors.Wrapf(err, "cannot apply %s %q", o.GetKind(), o.GetName())
		}
		x.children[name] = o
	}
	return nil
}

// call calls the function until it requires nothing new.
func (x *composite) call() (*fnv1.RunFunctionResponse, error) {
	xr, err := resource.AsStruct(x.object)
	if err != nil {
		return nil, err
	}
	req := &fnv1.RunFunctionRequest{
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{}},
		RequiredResources: map[string]*fnv1.Resources{},
	}
	for name, o := range x.children {
		s, err := resource.AsStruct(o)
		if err != nil {
			return nil, err
		}
		req.Observed.Resources[name] = &fnv1.Resource{Resource: s}
	}
	for {
		rsp, err := x.fn.RunFunction(x.Context(), req)
		if err != nil {
			return nil, err
		}
		for _, r := range rsp.GetResults() {
			if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
				return nil, errors.New(r.GetMessage())
			}
		}
		fresh := false
		for key, s := range rsp.GetRequirements().GetResources() {
			if _, exists := req.GetRequiredResources()[key]; exists {
				continue
			}
			fresh = true
			if req.RequiredResources[key], err = x.find(s); err != nil {
				return nil, err
			}
		}
		if !fresh {
			return rsp, nil
		}
	}
}

// find returns the objects that a requirement selects.
func (x *composite) find(s *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(s.GetApiVersion(), s.GetKind()+"List"))
	opts := []client.ListOption{client.InNamespace(s.GetNamespace()), client.MatchingLabels(s.GetMatchLabels().GetLabels())}
	if err := x.kube.List(x.Context(), l, opts...); err != nil {
		return nil, errors.Wrapf(err, "cannot list %s", s.GetKind())
	}
	out := &fnv1.Resources{}
	for i := range l.Items {
		if n := s.GetMatchName(); n != "" && n != l.Items[i].GetName() {
			continue
		}
		o, err := resource.AsStruct(&l.Items[i])
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &fnv1.Resource{Resource: o})
	}
	return out, nil
}
