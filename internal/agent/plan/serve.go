// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"

	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// schemeHTTP makes tailscaled speak plain HTTP to a backend, and HTTP/2
	// without TLS for gRPC (ipn/ipnlocal/serve.go, shouldProxyViaH2C).
	schemeHTTP = "http://"

	// mountAll is the path of a handler for all requests.
	mountAll = "/"
)

// Handlers of a service: what tailscaled does with what comes to its ports.
type Handlers map[uint16]Handler

// A Handler is what tailscaled does with what comes to one port.
type Handler struct {
	// Forward is where it goes, as host:port.
	Forward string

	// HTTP hands on requests, with headers that tell who asks, instead of bytes.
	HTTP bool

	// DNSName of the service. It is set where there is HTTP.
	DNSName string

	// ProxyProtocol is the version of the header that goes before a connection.
	// 0 is none. HTTP has none.
	ProxyProtocol int
}

// HandlersOf returns the handlers of services that are to be served, by service.
func HandlersOf(services []Service) map[string]Handlers {
	out := make(map[string]Handlers, len(services))
	for _, s := range services {
		if s.Handlers != nil {
			out[s.Name] = s.Handlers
		}
	}
	return out
}

// ServeConfig returns the serve config with the handlers given.
func ServeConfig(handlers map[string]Handlers) ([]byte, error) {
	sc := ipn.ServeConfig{Services: make(map[tailcfg.ServiceName]*ipn.ServiceConfig, len(handlers))}
	for name, hs := range handlers {
		svc := &ipn.ServiceConfig{TCP: make(map[uint16]*ipn.TCPPortHandler, len(hs))}
		for port, h := range hs {
			svc.TCP[port] = h.tcp()
			if !h.HTTP {
				continue
			}
			if svc.Web == nil {
				svc.Web = map[ipn.HostPort]*ipn.WebServerConfig{}
			}
			svc.Web[hostPort(h.DNSName, port)] = &ipn.WebServerConfig{
				Handlers: map[string]*ipn.HTTPHandler{mountAll: {Proxy: schemeHTTP + h.Forward}},
			}
		}
		sc.Services[tailcfg.ServiceName(name)] = svc
	}

	// Maps are encoded in the order of their keys.
	b, err := json.Marshal(sc)
	return b, errors.Wrap(err, "cannot encode serve config")
}

func (h Handler) tcp() *ipn.TCPPortHandler {
	if h.HTTP {
		return &ipn.TCPPortHandler{HTTP: true}
	}
	return &ipn.TCPPortHandler{TCPForward: h.Forward, ProxyProtocol: h.ProxyProtocol}
}

// hostPort is the key of a port's requests. Tailscaled looks for that of the
// service's own name, whatever name a client asks for (ipn/ipnlocal/serve.go,
// webServerConfig).
func hostPort(dnsName string, port uint16) ipn.HostPort {
	return ipn.HostPort(net.JoinHostPort(dnsName, strconv.Itoa(int(port))))
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
				hs[port] = handlerIn(h)
			}
		}
		for key, web := range svc.Web {
			port, err := key.Port()
			if err != nil {
				return nil, errors.Wrap(err, "cannot tell the port of a web handler")
			}
			h, ok := hs[port]
			if !ok || !h.HTTP || web == nil || web.Handlers[mountAll] == nil {
				continue
			}
			h.DNSName = strings.TrimSuffix(string(key), ":"+strconv.Itoa(int(port)))
			h.Forward = strings.TrimPrefix(web.Handlers[mountAll].Proxy, schemeHTTP)
			hs[port] = h
		}
		out[string(name)] = hs
	}
	return out, nil
}

func handlerIn(h *ipn.TCPPortHandler) Handler {
	return Handler{Forward: h.TCPForward, HTTP: h.HTTP, ProxyProtocol: h.ProxyProtocol}
}
