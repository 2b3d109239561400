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
