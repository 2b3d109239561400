// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Handlers are a service's handlers by port: they define what tailscaled does with connections.
type Handlers map[uint16]Handler

// A Handler defines what tailscaled does with connections to one port.
type Handler struct {
	// Forward is the address that connections are forwarded to, as host:port.
	Forward string

	// ProxyProtocol is the version of the header that is sent before a connection's data. 0 means
	// no header.
	ProxyProtocol int
}

// HandlersOf returns the handlers of the services to serve, by service.
func HandlersOf(services []Service) map[string]Handlers {
	out := make(map[string]Handlers, len(services))
	for _, s := range services {
		if s.Handlers != nil {
			out[s.Name] = s.Handlers
		}
	}
	return out
}

// ServeConfig returns the serve config with the given handlers.
func ServeConfig(handlers map[string]Handlers) ([]byte, error) {
	sc := ipn.ServeConfig{Services: make(map[tailcfg.ServiceName]*ipn.ServiceConfig, len(handlers))}
	for name, hs := range handlers {
		svc := &ipn.ServiceConfig{TCP: make(map[uint16]*ipn.TCPPortHandler, len(hs))}
		for port, h := range hs {
			svc.TCP[port] = &ipn.TCPPortHandler{TCPForward: h.Forward, ProxyProtocol: h.ProxyProtocol}
		}
		sc.Services[tailcfg.ServiceName(name)] = svc
	}

	// Map keys are encoded in sorted order.
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
		if svc == nil {
			continue
		}
		hs := make(Handlers, len(svc.TCP))
		for port, h := range svc.TCP {
			if h != nil {
				hs[port] = Handler{Forward: h.TCPForward, ProxyProtocol: h.ProxyProtocol}
			}
		}
		out[string(name)] = hs
	}
	return out, nil
}
