// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

// Keys of a BackendTLSPolicy's certificates.
const (
	CAKey         = "ca.crt"
	KindConfigMap = "ConfigMap"
)
