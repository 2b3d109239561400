// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var errNotYet = errors.New("not yet")

func TestUntil(t *testing.T) {
	cases := map[string]struct {
		reason string
		fails  int
		limit  time.Duration
		calls  int
		took   time.Duration
		err    error
	}{
		"Once":  {reason: "A check that succeeds is not repeated.", limit: time.Minute, calls: 1},
		"Later": {reason: "A check is repeated until it succeeds.", fails: 3, limit: time.Minute, calls: 4, took: 3 * time.Second},
		"Never": {reason: "The last error is returned when the context ends.", fails: 100, limit: 2500 * time.Millisecond, calls: 3, took: 2500 * time.Millisecond, err: errNotYet},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				calls, start := 0, time.Now()
				err := Until(ctx, time.Second, func(context.Context) error {
					if calls++; calls <= tc.fails {
						return errNotYet
					}
					return nil
				})
				if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\nUntil(...): -want error, +got:\n%s", tc.reason, diff)
				}
				if calls != tc.calls || time.Since(start) != tc.took {
					t.Errorf("\n%s\nUntil(...): want %d calls in %s, got %d in %s", tc.reason, tc.calls, tc.took, calls, time.Since(start))
				}
			})
		})
	}
}
