// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the inputs of our composition functions: what a step of
// anyone's Composition says to one of them. No object of these kinds is ever
// made. The specs are those of apis/gateway.
//
// +kubebuilder:object:generate=true
// +groupName=fn.gateway.tailscale.com
// +versionName=v1alpha1
package v1alpha1
