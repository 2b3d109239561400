// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleproxygroup

import (
	"testing"

	"github.com/crossplane/function-sdk-go/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
)

func TestRunFunction(t *testing.T) {
	composetest.Golden(t, &Function{log: logging.NewNopLogger()})
}
