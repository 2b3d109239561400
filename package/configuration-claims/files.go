// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package claims derives the configuration of claims from the configuration of composites in a namespace.
// Its folder has only crossplane.yaml, and the digests of the derived files, so that a review shows a
// change.
package claims

import (
	"encoding/json"
	"maps"
	"path"
	"slices"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	apiextv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
)

// Files returns the derived files, by path.
func Files() (map[string][]byte, error) {
	files, err := configuration.Files()
	if err != nil {
		return nil, err
	}
	return derive(files)
}

// derive returns the files for claims that correspond to those of a configuration.
func derive(files map[string][]byte) (map[string][]byte, error) {
	// Kinds that have a claim.
	claimed := map[string]bool{}
	// The managed kinds are the same.
	out := maps.Clone(files)
	for _, folder := range []struct {
		name    string
		convert func(data []byte, claimed map[string]bool) ([]byte, error)
	}{{"xrds", convertDefinition}, {"compositions", convertComposition}} {
		for f, b := range files {
			if path.Dir(f) != folder.name {
				continue
			}
			var err error
			if out[f], err = folder.convert(b, claimed); err != nil {
				return nil, errors.Wrapf(err, "cannot convert %s", f)
			}
		}
	}
	return out, nil
}

// convertDefinition returns the definition of a kind with claims, which it adds to claimed. A kind in no
// namespace keeps its definition.
func convertDefinition(data []byte, claimed map[string]bool) ([]byte, error) {
	xrd := &apiextv2.CompositeResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, xrd); err != nil {
		return nil, errors.Wrap(err, "cannot parse")
	}
	if xrd.Spec.Scope != apiextv2.CompositeResourceScopeNamespaced {
		return data, nil
	}
	claimed[xrd.Spec.Names.Kind] = true
	legacy, err := convert(xrd)
	if err != nil {
		return nil, err
	}
	return configuration.Encode(legacy)
}

// categoryUsers has the kinds that users write. The composites of claims are not
// among them.
const categoryUsers = "tailscale"

// convert turns the definition of composites in a namespace into one of the older
// version, whose claims have the names of the composites and whose composites have
// an X before theirs.
func convert(definition *apiextv2.CompositeResourceDefinition) (*apiextv1.CompositeResourceDefinition, error) {
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

// convertComposition turns a Composition into that of the composites of claims, if
// its kind has some.
func convertComposition(data []byte, claimed map[string]bool) ([]byte, error) {
	c := &apiextv1.Composition{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, errors.Wrap(err, "cannot parse")
	}
	if claimed[c.Spec.CompositeTypeRef.Kind] {
		c.Spec.CompositeTypeRef.Kind = "X" + c.Spec.CompositeTypeRef.Kind
		c.Name = "x" + c.Name
	}
	return configuration.Encode(c)
}
