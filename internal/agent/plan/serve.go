// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// HandlersOf returns the handlers of services, by service.
func HandlersOf(services []Service) map[string]Handlers {
	out := make(map[string]Handlers, len(services))
	for _, s := range services {
		out[s.Name] = s.Handlers
	}
	return out
}

// ServeConfig returns the serve config with the handlers given. Connections are
// forwarded as they come, without TLS or HTTP of tailscaled's own.
func ServeConfig(handlers map[string]Handlers) ([]byte, error) {
	sc := ipn.ServeConfig{Services: make(map[tailcfg.ServiceName]*ipn.ServiceConfig, len(handlers))}
	for name, hs := range handlers {
		tcp := make(map[uint16]*ipn.TCPPortHandler, len(hs))
		for port, addr := range hs {
			tcp[port] = &ipn.TCPPortHandler{TCPForward: addr}
		}
		sc.Services[tailcfg.ServiceName(name)] = &ipn.ServiceConfig{TCP: tcp}
	}

	// Maps are encoded in the order of their keys.
	b, err := json.Marshal(sc)
	return b, errors.Wrap(err, "cannot encode serve config")
}

// HandlersIn returns the handlers of a serve config that ServeConfig made.
func HandlersIn(config []byte) (map[string]Handlers, error) {
	var sc ipn.ServeConfig
	if err := json.Unmarshal(config, &sc); err != nil {
		return nil, errors.Wrap(err, "cannot decode serve config")
	}
	out := make(map[string]Handlers, len(sc.Services))
	for name, svc := range sc.Services {
		hs := make(Handlers, len(svc.TCP))
		for port, h := range svc.TCP {
			hs[port] = h.TCPForward
		}
		out[string(name)] = hs
	}
	return out, nil
}
