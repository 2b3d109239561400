// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// KindConfigMap is the kind of the objects that hold the authorities of a BackendTLSPolicy.
const KindConfigMap = "ConfigMap"

// A ConfigMap is the state of a ConfigMap: what the extension reads of it, and nothing else.
type ConfigMap struct {
	backendtls.Authorities

	// Config is Envoy Gateway's configuration. Nil if the ConfigMap is another one, or if the
	// extension may not read it.
	Config *EnvoyGatewayConfig
}

// UnreadableConfigMap returns the state of a ConfigMap that the extension may not read.
func UnreadableConfigMap(types.NamespacedName) ConfigMap {
	return ConfigMap{Authorities: backendtls.Authorities{Problem: "the extension may not read; grant it list and watch of ConfigMaps in that namespace"}}
}
