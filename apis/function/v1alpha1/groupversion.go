// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the inputs of the composition functions, which configure a step of a
// user's Composition. Objects of these kinds are never created in a cluster. The specs are
// those of apis/gateway.
//
// +kubebuilder:object:generate=true
// +groupName=fn.gateway.tailscale.com
// +versionName=v1alpha1
package v1alpha1
