// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		c := newContact(func() (*apiversion.Info, error) {
			if lost.Load() {
				return nil, errors.New("boom")
			}
			return nil, nil
		}, logging.NewNopLogger())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.poll(ctx) }()

		<-time.After(time.Hour + time.Second)
		synctest.Wait()
		if got := c.Silence(); got != 0 {
			t.Errorf("an API server that answers is not silent: got %s", got)
		}
		lost.Store(true)
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if got, want := c.Silence(), 10*time.Minute-contactInterval+time.Second; got != want {
			t.Errorf("the silence should begin with the last answer: want %s, got %s", want, got)
		}
		lost.Store(false)
		<-time.After(contactInterval)
		synctest.Wait()
		if got := c.Silence(); got != 0 {
			t.Errorf("a server that answers again is not silent: got %s", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
