// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

// Composites returns the CRDs that Crossplane creates for the project's namespaced XRDs.
func Composites(root string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return definitions(root, "configuration", xcrd.ForCompositeResource)
}

// Claims returns the CRDs of claims that Crossplane creates for the XRDs of the other
// configuration, without those of the composites.
func Claims(root string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return definitions(root, "configuration-claims", func(xrd *xpv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
		if !xrd.OffersClaim() {
			return xcrd.ForCompositeResource(xrd)
		}
		return xcrd.ForCompositeResourceClaim(xrd)
	})
}

// definitions returns the CRDs of a configuration's XRDs.
func definitions(root, configuration string, crdOf func(*xpv1.CompositeResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error)) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(root, "package", configuration, "xrds", "*.yaml"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot list XRDs")
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read XRD")
		}
		xrd := &xpv1.CompositeResourceDefinition{}
		if err := yaml.Unmarshal(b, xrd); err != nil {
			return nil, errors.Wrapf(err, "cannot decode XRD %q", filepath.Base(f))
		}
		crd, err := crdOf(xrd)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot build a CRD of XRD %q", filepath.Base(f))
		}
		// No XRD exists that could own it.
		crd.SetOwnerReferences(nil)
		out = append(out, crd)
	}
	return out, nil
}
