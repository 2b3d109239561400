// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"k8s.io/apimachinery/pkg/types"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// A Requirement selects other objects that a function reads. Crossplane supplies them and calls the
// function again, and does so whenever one of them changes.
type Requirement struct {
	// Key is the key of the requirement in the request and the response.
	Key string

	APIVersion string
	Kind       string

	// Namespace is the namespace of the objects. It is empty for a cluster-scoped kind.
	Namespace string

	// Name is the name of a single object. It is empty to select objects by Labels.
	Name string

	// Labels are the labels of the objects.
	Labels map[string]string
}

// Require requests objects. A function must request the same objects in every run with the same
// input, whether or not Crossplane has supplied them.
func (r *Run) Require(q Requirement) {
	if r.reply.rsp.GetRequirements() == nil {
		r.reply.rsp.Requirements = &fnv1.Requirements{}
	}
	if r.reply.rsp.GetRequirements().GetResources() == nil {
		r.reply.rsp.Requirements.Resources = map[string]*fnv1.ResourceSelector{}
	}
	s := &fnv1.ResourceSelector{ApiVersion: q.APIVersion, Kind: q.Kind}
	if q.Namespace != "" {
		s.Namespace = &q.Namespace
	}
	if q.Name != "" {
		s.Match = &fnv1.ResourceSelector_MatchName{MatchName: q.Name}
	} else {
		s.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: q.Labels}}
	}
	r.reply.rsp.Requirements.Resources[q.Key] = s
}

// Required decodes the objects that Crossplane supplied for a requirement, in its order. It returns
// false if Crossplane has not read them yet, and true with an empty list if there are none.
func Required[T any](r *Run, q Requirement) ([]T, bool, error) {
	found, ok := r.req.GetRequiredResources()[q.Key]
	if !ok {
		return nil, false, nil
	}
	out := make([]T, len(found.GetItems()))
	for i, f := range found.GetItems() {
		if err := fromStruct(f.GetResource(), &out[i]); err != nil {
			return nil, true, errors.Wrapf(err, "cannot read the required %s", q.Kind)
		}
	}
	return out, true, nil
}

// Lookup requires objects and returns those that Crossplane has supplied, see Required.
func Lookup[T any](r *Run, q Requirement) ([]T, bool, error) {
	r.Require(q)
	return Required[T](r, q)
}

// requireGrants returns the requirement of the ReferenceGrants of a namespace.
func requireGrants(namespace string) Requirement {
	return Requirement{
		Key:        "grants-" + namespace,
		APIVersion: gwapiv1beta1.GroupVersion.String(),
		Kind:       "ReferenceGrant",
		Namespace:  namespace,
	}
}

// Grants requires the ReferenceGrants of a namespace and returns them. It returns false if
// Crossplane has not read them yet.
func (r *Run) Grants(namespace string) (refgrant.Grants, bool, error) {
	found, looked, err := Lookup[gwapiv1beta1.ReferenceGrant](r, requireGrants(namespace))
	if err != nil || !looked {
		return nil, false, err
	}
	out := refgrant.Grants{}
	for i := range found {
		out[types.NamespacedName{Namespace: found[i].GetNamespace(), Name: found[i].GetName()}] = &found[i].Spec
	}
	return out, true, nil
}
