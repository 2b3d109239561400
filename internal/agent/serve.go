// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// A serving is what tailscaled serves: the serve config.
type serving struct {
	log     logging.Logger
	metrics *Metrics
	api     *reachability

	// dir is the directory of the serve config, and kernel is what writes to it.
	dir    *atomicdir.Dir
	kernel *kernelRole

	// move is how long a withdrawn service is still served.
	move time.Duration

	// handlers are the handlers of the serve config on disk. Nil until there is one.
	handlers map[string]plan.Handlers

	// leaving are services that are no longer wanted, and when to stop serving them.
	leaving map[string]time.Time
}

// restore loads the serve config that an earlier run has written.
func (s *serving) restore() error {
	b, err := s.dir.Read()
	if err != nil || b == nil {
		return err
	}
	s.handlers, err = plan.HandlersIn(b)
	if err != nil {
		s.log.Info("Ignoring the serve config of an earlier run", "error", err)
	}
	return nil
}

// has reports whether the serve config on disk has a service.
func (s *serving) has(name string) bool { return s.handlers[name] != nil }

// write writes the serve config. An unhealthy service keeps its handlers, and a service
// that is no longer wanted keeps them for a while after its withdrawal: without a handler its
// connections would be cut.
func (s *serving) write(at time.Time, services []plan.Service) error {
	wanted := plan.HandlersOf(services)
	s.updateLeaving(at, wanted)
	handlers := maps.Clone(wanted)
	for name, deadline := range s.leaving {
		if at.Before(deadline) {
			handlers[name] = s.handlers[name]
		}
	}
	forwards := s.kernel.forwarding(handlers, wanted)
	if s.handlers != nil && equal(handlers, s.handlers) && s.kernel.has(forwards) {
		return nil
	}
	if (onlyDrops(s.handlers, handlers) || s.kernel.cautious(s.handlers != nil)) && !s.api.reached(at) {
		return nil
	}

	b, err := plan.ServeConfig(handlers)
	if err != nil {
		return err
	}
	changed, err := s.kernel.write(b, forwards)
	if err != nil {
		return err
	}
	s.handlers = handlers
	if changed {
		s.metrics.wrote(fileServe)
		s.log.Debug("Wrote serve config", "services", slices.Sorted(maps.Keys(handlers)))
	}
	return nil
}

// updateLeaving records which services are served but not wanted, and forgets those that are
// wanted again or no longer served.
func (s *serving) updateLeaving(at time.Time, wanted map[string]plan.Handlers) {
	if s.leaving == nil {
		s.leaving = make(map[string]time.Time)
	}
	for name := range s.handlers {
		if s.leaving[name].IsZero() && wanted[name] == nil {
			s.leaving[name] = at.Add(s.move)
		}
	}
	maps.DeleteFunc(s.leaving, func(name string, _ time.Time) bool {
		return wanted[name] != nil || s.handlers[name] == nil
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
