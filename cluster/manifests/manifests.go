// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifests carries what a cluster needs beside the packages.
package manifests

import _ "embed"

// RBAC are two ClusterRoles: first the one that lets Crossplane compose what our
// functions ask for, then one for users.
//
//go:embed rbac.yaml
var RBAC []byte
