// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// timeout limits a request.
const timeout = 10 * time.Second

// Options of a Controller.
type Options struct {
	// Version of this build.
	Version string

	// Permitted reports whether a route may reference a backend.
	Permitted func(r ir.RouteKey, b ir.BackendRef) bool

	// Gateway is the Gateway of a dedicated extension. Nil means all Gateways without a dedicated
	// extension.
	Gateway *types.NamespacedName

	// Dedicated is called with the Gateways that have a dedicated extension, whenever the set
	// changes. It may be nil.
	Dedicated func(gateways map[types.NamespacedName]bool)

	// Hooks returns the hooks that this replica has answered for a Gateway, NAMESPACE/NAME,
	// since it started. It returns nil if there are none.
	Hooks func(gateway string) *tailnetv1alpha1.ReportedHooks

	// Log may be nil.
	Log logging.Logger
}
