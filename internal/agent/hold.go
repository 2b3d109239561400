// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/control"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// maxWait bounds what a control server can ask the agent to wait.
const maxWait = 30 * time.Second

// A hold delays the first start of containerboot in the pod while control does not answer. A node
// with a whole state would otherwise ask for a new key after its first failed login, wait ten
// minutes for one, and not try again (tailscale.com cmd/containerboot/main.go, authLoop, at 1.102.5
// and 1.104.5). Only the pod's first start can be delayed, because kubelet starts containers again
// without asking the agent. A node without a state needs a key in any case.
type hold struct {
	// answers asks whether control answers. Nil means that the hold is over.
	answers func(ctx context.Context, config []byte) error

	// run runs a function in the goroutine of the loop.
	run func(func())

	// patience is how long the hold lasts at most, and pause is the time between two requests, unless
	// control asks for more.
	patience time.Duration
	pause    time.Duration

	log logging.Logger

	deadline time.Time
	checking bool
	retryAt  time.Time
	err      error
}

// step reports whether containerboot must wait, and when to call it again.
func (h *hold) step(ctx context.Context, at time.Time, f facts) (bool, time.Time) {
	switch {
	case h.answers == nil:
		return false, time.Time{}
	case f.tailnet.Session > 0:
		// Tailscaled runs already: only the agent was started again.
		h.end()
		return false, time.Time{}
	case f.stateLost:
		h.end()
		return false, time.Time{}
	}
	if h.deadline.IsZero() {
		h.deadline = at.Add(h.patience)
	}
	if !at.Before(h.deadline) {
		h.log.Info("Letting the tailscale container start although the control server does not answer", "error", h.err)
		h.end()
		return false, time.Time{}
	}
	if f.stateSeen && !h.checking && !at.Before(h.retryAt) {
		h.checking = true
		config, answers := f.base, h.answers
		go func() {
			err := answers(ctx, config)
			h.run(func() { h.answered(time.Now(), err) })
		}()
	}
	return true, earliest(at, h.deadline, h.retryAt)
}

// end ends the hold. A later answer changes nothing.
func (h *hold) end() { h.answers = nil }

// answered records the result of a request to control.
func (h *hold) answered(at time.Time, err error) {
	h.checking = false
	if h.answers == nil {
		return
	}
	if err == nil {
		h.end()
		return
	}
	if h.err == nil {
		h.log.Info("Waiting for the control server before the tailscale container starts", "error", err)
	}
	h.err = err
	pause := h.pause
	if w := (*control.WaitError)(nil); errors.As(err, &w) {
		pause = max(pause, min(w.Delay, maxWait))
	}
	h.retryAt = at.Add(pause)
}

// problem returns why control does not answer, or "".
func (h *hold) problem() string {
	if h.answers == nil || h.err == nil {
		return ""
	}
	return plainText(h.err.Error())
}

// waiting describes what the hold waits for.
func (h *hold) waiting() string {
	if h.err == nil {
		return "Waiting for an answer of the control server"
	}
	return "Waiting for the control server: " + plainText(h.err.Error())
}
