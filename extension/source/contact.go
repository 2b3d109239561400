// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// contactInterval is the interval at which the extension requests the API server's version.
// Informers do not report a lost connection: to them a quiet cluster looks the same.
const contactInterval = 30 * time.Second

// A contact records when the API server answered last.
type contact struct {
	ask  func() (*apiversion.Info, error)
	log  logging.Logger
	last atomic.Pointer[time.Time]
}

// newContact returns a contact that counts the silence from now on.
func newContact(ask func() (*apiversion.Info, error), log logging.Logger) *contact {
	c := &contact{ask: ask, log: log}
	c.answered()
	return c
}

func (c *contact) answered() {
	at := time.Now()
	c.last.Store(&at)
}

// poll requests the version until ctx ends.
func (c *contact) poll(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(context.Context) {
		if _, err := c.ask(); err != nil {
			c.log.Info("Cannot reach the Kubernetes API; the known objects stay in use", "error", err)
			return
		}
		c.answered()
	}, contactInterval)
	return nil
}

// Silence returns the time for which the API server has not answered. Times below one interval
// count as zero.
func (c *contact) Silence() time.Duration {
	return max(time.Since(*c.last.Load())-contactInterval, 0)
}
