// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package references reads only the Secrets and ConfigMaps that objects reference: certificates that
// Envoys present to backends, and certificates of authorities that they trust. Each object has a
// separate watch by its name, as the kubelet watches those of pods, so that others cost nothing: the
// API server finds watches of Secrets and ConfigMaps by the name (NameTriggerFunc in Kubernetes'
// pkg/registry/core/secret and pkg/registry/core/configmap, which storage/storage.go of both
// registers), and reads one key for a list (ListPredicate in
// k8s.io/apiserver/pkg/registry/generic/registry/store.go). Other packages make and use the
// certificates.
package references
