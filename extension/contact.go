// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// contactInterval is how often the API server is asked for its version. Informers do
// not tell that they hear nothing: a quiet cluster and a lost one look the same.
const contactInterval = 30 * time.Second

// A contact knows when the API server answered last.
type contact struct {
	ask  func() (*apiversion.Info, error)
	log  logging.Logger
	last atomic.Pointer[time.Time]
}

// newContact counts from now on.
func newContact(ask func() (*apiversion.Info, error), log logging.Logger) *contact {
	c := &contact{ask: ask, log: log}
	c.answered()
	return c
}

func (c *contact) answered() {
	now := time.Now()
	c.last.Store(&now)
}

// keep asking until ctx ends.
func (c *contact) keep(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(context.Context) {
		if _, err := c.ask(); err != nil {
			c.log.Info("Cannot reach the Kubernetes API; what is known stays in use", "error", err)
			return
		}
		c.answered()
	}, contactInterval)
	return nil
}

// Silence is how long the API server has not answered. What is within one interval
// counts for nothing.
func (c *contact) Silence() time.Duration {
	return max(time.Since(*c.last.Load())-contactInterval, 0)
}
