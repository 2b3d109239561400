// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// writeServe writes the serve config. An unhealthy service keeps its handlers, and a service
// that is no longer wanted keeps them for a while after its withdrawal: without a handler its
// connections would be cut.
func (l *loop) writeServe(at time.Time, services []plan.Service, listed bool) error {
	if !listed && l.handlers != nil {
		return nil
	}
	wanted := plan.HandlersOf(services)
	l.updateLeaving(at, wanted)
	handlers := maps.Clone(wanted)
	for name, deadline := range l.leaving {
		if at.Before(deadline) {
			handlers[name] = l.handlers[name]
		}
	}
	forwards := l.kernel.forwarding(handlers, wanted)
	if l.handlers != nil && equal(handlers, l.handlers) && l.kernel.has(forwards) {
		return nil
	}
	if (onlyDrops(l.handlers, handlers) || l.kernel.cautious(l.handlers != nil)) && !l.reached(at) {
		return nil
	}

	b, err := plan.ServeConfig(handlers)
	if err != nil {
		return err
	}
	changed, err := l.writeProxies(b, forwards)
	if err != nil {
		return err
	}
	l.handlers = handlers
	if changed {
		l.metrics.wrote(fileServe)
		l.log.Debug("Wrote serve config", "services", slices.Sorted(maps.Keys(handlers)))
	}
	return nil
}

// updateLeaving records which services are served but not wanted, and forgets those that are
// wanted again or no longer served.
func (l *loop) updateLeaving(at time.Time, wanted map[string]plan.Handlers) {
	if l.leaving == nil {
		l.leaving = make(map[string]time.Time)
	}
	for name := range l.handlers {
		if l.leaving[name].IsZero() && wanted[name] == nil {
			l.leaving[name] = at.Add(l.opts.Drain)
		}
	}
	maps.DeleteFunc(l.leaving, func(name string, _ time.Time) bool {
		return wanted[name] != nil || l.handlers[name] == nil
	})
}

// onlyDrops reports whether the new handlers are a subset of the old ones. Containerboot exits
// when it cannot store a new serve config in the state Secret (cmd/containerboot/serve.go). New
// handlers come from the API server, so it is available then, but handlers can become due for
// removal while it is not.
func onlyDrops(from, to map[string]plan.Handlers) bool {
	for name, hs := range to {
		if !maps.Equal(from[name], hs) {
			return false
		}
	}
	return len(to) < len(from)
}

func equal(a, b map[string]plan.Handlers) bool {
	return maps.EqualFunc(a, b, maps.Equal[plan.Handlers, plan.Handlers])
}
