// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"testing"

	"github.com/crossplane/function-sdk-go/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
)

func TestRunFunction(t *testing.T) {
	composetest.Golden(t, &Function{log: logging.NewNopLogger(), envoyGateway: []string{"envoy-gateway-system"}}, "bidirectional-ready", "egress", "egress-ports", "metrics", "network-policy")
}

func TestPipeline(t *testing.T) {
	composetest.Pipeline(t, &Function{log: logging.NewNopLogger(), envoyGateway: []string{"envoy-gateway-system"}}, "TailscaleEndpoints", "../../examples/pipeline")
}

// TestStart counts how often Crossplane writes a composite while it starts.
func TestStart(t *testing.T) {
	composetest.Start(t, &Function{log: logging.NewNopLogger(), envoyGateway: []string{"envoy-gateway-system"}})
}
