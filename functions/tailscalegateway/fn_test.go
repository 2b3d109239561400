// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"testing"

	"github.com/crossplane/function-sdk-go/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
)

func TestRunFunction(t *testing.T) {
	composetest.Golden(t, &Function{log: logging.NewNopLogger(), settings: settings{extensionImage: "example.org/extension:v1", envoyGateway: []string{"envoy-gateway-system"}}}, "extension-server-ready", "extension-server-service-lost")
}

// TestStart counts how often Crossplane writes a composite while it starts.
func TestStart(t *testing.T) {
	composetest.Start(t, &Function{log: logging.NewNopLogger(), settings: settings{envoyGateway: []string{"envoy-gateway-system"}}})
}
