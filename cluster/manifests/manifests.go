// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifests carries what a cluster needs beside the packages.
package manifests

import _ "embed"

// RBAC are ClusterRoles: what lets Crossplane compose what our functions ask for,
// what lets users scale, and what the provider needs beside what Crossplane gives
// it.
//
//go:embed rbac.yaml
var RBAC []byte

// Tenants are ClusterRoles for those who write user kinds.
//
//go:embed tenants.yaml
var Tenants []byte

// Admission lets nobody but our parts write the kinds by which these agree.
//
//go:embed admission.yaml
var Admission []byte

// AdmissionExtension confines the extension to the routes that it made.
//
//go:embed admission-extension.yaml
var AdmissionExtension []byte
