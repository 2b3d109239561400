// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func TestLock(t *testing.T) {
	first := Contender{Scopes: []string{"config/a", "tailnet/x"}}
	unlock, err := Lock(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context
		c      Contender
		want   error
	}{
		"SameConfig":  {reason: "A contender with the same config waits.", ctx: ended, c: Contender{Scopes: []string{"config/a"}}, want: context.Canceled},
		"SameTailnet": {reason: "A contender that reaches the tailnet through another config waits.", ctx: ended, c: Contender{Scopes: []string{"tailnet/x", "config/b"}}, want: context.Canceled},
		"Other":       {reason: "A contender of another tailnet does not wait.", ctx: t.Context(), c: Contender{Scopes: []string{"config/c", "tailnet/y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			unlock, err := Lock(tc.ctx, tc.c)
			if !errors.Is(err, tc.want) {
				t.Fatalf("\n%s\nLock(...): want %v, got %v", tc.reason, tc.want, err)
			}
			if err == nil {
				unlock()
			}
		})
	}
	unlock()
	// The failed attempt released its locks as well.
	unlock, err = Lock(t.Context(), Contender{Scopes: []string{"config/a", "config/b", "tailnet/x"}})
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
