// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kustomization carries the objects of the chart tailscale-gateway with its default values,
// in a folder for kubectl and kustomize.
package kustomization

import (
	"bytes"
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Install is the output of "helm template" for the chart. TestInstall of package charts keeps it
// up to date.
//
//go:embed install.yaml
var Install []byte

// Names of the ValidatingAdmissionPolicies in Install, and of their bindings.
const (
	// PolicyInternalKinds keeps other clients from writing internal kinds.
	PolicyInternalKinds = "tailscale-gateway-internal-kinds"

	// PolicyExtensionRoutes confines the extension to the routes that it created.
	PolicyExtensionRoutes = "tailscale-gateway-extension-routes"

	// PolicyExtensionEndpoints confines it to EndpointSlices that it created, with endpoints that are not
	// ready.
	PolicyExtensionEndpoints = "tailscale-gateway-extension-endpoints"

	// PolicyExtensionStatus confines it to its own ancestors in the status of BackendTLSPolicies.
	PolicyExtensionStatus = "tailscale-gateway-extension-status"
)

// ExtensionPolicies are the names of the policies that confine the extension.
var ExtensionPolicies = []string{PolicyExtensionRoutes, PolicyExtensionEndpoints, PolicyExtensionStatus}

// Get parses the object of a kind and name in Install. It returns an error if Install has none.
func Get(kind, name string, obj any) error {
	for doc := range bytes.SplitSeq(Install, []byte("\n---\n")) {
		m := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal(doc, &m); err != nil {
			return errors.Wrap(err, "cannot parse the manifest")
		}
		if m.Kind == kind && m.GetName() == name {
			return errors.Wrapf(yaml.UnmarshalStrict(doc, obj), "cannot parse %s %q", kind, name)
		}
	}
	return errors.Errorf("the manifest has no %s %q", kind, name)
}
