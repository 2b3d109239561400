// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// categoryUsers has the kinds that users write. The composites of claims are not
// among them.
const categoryUsers = "tailscale"

// claims turns the definition of composites in a namespace into one of the older
// version, whose claims have the names of the composites and whose composites have
// an X before theirs.
func claims(definition *apiextv2.CompositeResourceDefinition) (*apiextv1.CompositeResourceDefinition, error) {
	j, err := json.Marshal(definition)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode definition")
	}
	// The older version has the same fields, and more.
	out := &apiextv1.CompositeResourceDefinition{}
	if err := json.Unmarshal(j, out); err != nil {
		return nil, errors.Wrap(err, "cannot decode definition")
	}
	for _, v := range out.Spec.Versions {
		if err := checkReserved(v); err != nil {
			return nil, err
		}
	}
	out.APIVersion = apiextv1.SchemeGroupVersion.String()
	out.Spec.Scope = ptr.To(apiextv1.CompositeResourceScopeLegacyCluster)
	out.Spec.ClaimNames = definition.Spec.Names.DeepCopy()
	out.Spec.Names = compositeNames(definition.Spec.Names)
	out.Name = out.Spec.Names.Plural + "." + out.Spec.Group
	out.Spec.DefaultCompositionRef = &apiextv1.CompositionReference{Name: out.Name}
	// A claim is gone when all that it made is: one of the same name may follow.
	out.Spec.DefaultCompositeDeletePolicy = ptr.To(xpv2.CompositeDeleteForeground)
	return out, nil
}

// compositeNames returns the names of the composites of claims. Only claims have short names.
func compositeNames(n extv1.CustomResourceDefinitionNames) extv1.CustomResourceDefinitionNames {
	return extv1.CustomResourceDefinitionNames{
		Kind:       "X" + n.Kind,
		ListKind:   "X" + n.ListKind,
		Plural:     "x" + n.Plural,
		Singular:   "x" + n.Singular,
		Categories: slices.DeleteFunc(slices.Clone(n.Categories), func(c string) bool { return c == categoryUsers }),
	}
}

// checkReserved fails for a field of spec that Crossplane has in claims or their
// composites: it would take ours away without a word.
func checkReserved(v apiextv1.CompositeResourceDefinitionVersion) error {
	s := &extv1.JSONSchemaProps{}
	if err := json.Unmarshal(v.Schema.OpenAPIV3Schema.Raw, s); err != nil {
		return errors.Wrap(err, "cannot decode schema")
	}
	reserved := xcrd.CompositeResourceSpecProps(apiextv1.CompositeResourceScopeLegacyCluster, nil)
	maps.Copy(reserved, xcrd.CompositeResourceClaimSpecProps(nil))
	for _, f := range slices.Sorted(maps.Keys(reserved)) {
		if _, ok := s.Properties["spec"].Properties[f]; ok {
			return errors.Errorf("schema uses spec.%s, which Crossplane adds", f)
		}
	}
	return nil
}

// claimsComposition turns a Composition into that of the composites of claims, if
// its kind has some.
func claimsComposition(data []byte, claimed map[string]bool) (*apiextv1.Composition, error) {
	c := &apiextv1.Composition{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, errors.Wrap(err, "cannot parse")
	}
	if claimed[c.Spec.CompositeTypeRef.Kind] {
		c.Spec.CompositeTypeRef.Kind = "X" + c.Spec.CompositeTypeRef.Kind
		c.Name = "x" + c.Name
	}
	return c, nil
}
