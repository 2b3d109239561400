// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package retry waits for conditions in tests and benchmarks.
package retry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Until calls check at once and then after each pause, until check returns nil. When ctx ends, it
// returns the last error of check.
func Until(ctx context.Context, pause time.Duration, check func(context.Context) error) error {
	last := check(ctx)
	if last == nil {
		return nil
	}
	if wait.PollUntilContextCancel(ctx, pause, false, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	}) != nil {
		return last
	}
	return nil
}
