// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package source keeps the extension's store up to date, from the Kubernetes API or from a folder of files.
package source

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
)

// A Source keeps a store up to date.
type Source interface {
	// Start reads objects until ctx ends.
	Start(ctx context.Context) error

	// Synced returns a channel that is closed when the store has all objects of the start.
	Synced() <-chan struct{}

	// Waiting returns the reasons why the source is not synced yet.
	Waiting() []string

	// Silence returns the time for which the origin of the objects has been unreachable.
	Silence() time.Duration

	// Translated records the result of a hook, and returns the number of answers that were from
	// older objects than requested, each counted once. It does not wait.
	Translated(t hooks.Translation) int

	// Again makes Envoy Gateway translate all Gateways again.
	Again()

	// Farewell makes Envoy Gateway call other replicas, because this process no longer answers.
	Farewell(log logging.Logger)
}
