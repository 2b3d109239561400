// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"path"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/tailscale-gateway/tailscale-gateway/package/configuration"
	claims "github.com/tailscale-gateway/tailscale-gateway/package/configuration-claims"
)

// Composites returns the CRDs that Crossplane creates for the project's namespaced XRDs.
func Composites() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := configuration.Files()
	if err != nil {
		return nil, err
	}
	return definitions(files, xcrd.ForCompositeResource)
}

// Claims returns the CRDs of claims that Crossplane creates for the XRDs of the other
// configuration, without those of the composites.
func Claims() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := claims.Files()
	if err != nil {
		return nil, err
	}
	return definitions(files, func(xrd *xpv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
		if !xrd.OffersClaim() {
			return xcrd.ForCompositeResource(xrd)
		}
		return xcrd.ForCompositeResourceClaim(xrd)
	})
}

// definitions returns the CRDs of the XRDs among a configuration's files.
func definitions(files map[string][]byte, crdOf func(*xpv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error)) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(f) != "xrds" {
			continue
		}
		xrd := &xpv1.CompositeResourceDefinition{}
		if err := yaml.Unmarshal(files[f], xrd); err != nil {
			return nil, errors.Wrapf(err, "cannot decode %s", f)
		}
		crd, err := crdOf(xrd)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot build a CRD of %s", f)
		}
		// No XRD exists that could own it.
		crd.SetOwnerReferences(nil)
		out = append(out, crd)
	}
	return out, nil
}
