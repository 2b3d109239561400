// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"tailscale.com/control/controlhttp/controlhttpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// machineCtx keys the machine that a request over Noise comes from.
type machineCtx struct{}

func machineOf(r *http.Request) key.MachinePublic {
	k, ok := r.Context().Value(machineCtx{}).(key.MachinePublic)
	if !ok {
		return key.MachinePublic{}
	}
	return k
}

// serveKey serves the server's public keys.
func (s *Server) serveKey(w http.ResponseWriter) {
	s.mu.Lock()
	noise, legacy := s.st.NoiseKey.Public(), s.st.LegacyKey.Public()
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, tailcfg.OverTLSPublicKeyResponse{LegacyPublicKey: legacy, PublicKey: noise})
}

// serveNoiseUpgrade speaks HTTP/2 inside Noise with a node until it leaves.
func (s *Server) serveNoiseUpgrade(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	priv := s.st.NoiseKey
	s.mu.Unlock()
	// AcceptHTTP writes the response when it fails.
	cc, err := controlhttpserver.AcceptHTTP(r.Context(), w, r, priv, nil)
	if err != nil {
		s.log.Debug("Cannot upgrade to Noise", "error", err)
		return
	}
	// The connection is hijacked, so http.Server.Close does not end it.
	stop := context.AfterFunc(s.ctx, func() { _ = cc.Close() }) //nolint:contextcheck // The request's own context ended with the hijacking.
	defer stop()
	defer func() { _ = cc.Close() }() // Closing twice is what usually happens.

	ctx := context.WithValue(s.ctx, machineCtx{}, cc.Peer())
	h2 := &http2.Server{}
	h2.ServeConn(cc, &http2.ServeConnOpts{
		Context: ctx,
		BaseConfig: &http.Server{ //nolint:gosec // It reads no headers: that is HTTP/2's.
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer s.recover(w, r)
				s.withFaults(s.noise).ServeHTTP(w, r)
			}),
			// A node whose host has failed closes no connection: pings detect it.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second},
		},
	})
}

// noiseMux returns the routes that nodes reach inside Noise.
func (s *Server) noiseMux() *http.ServeMux {
	m := http.NewServeMux()
	m.HandleFunc("POST /machine/register", s.serveRegister)
	m.HandleFunc("POST /machine/map", s.serveMap)
	m.HandleFunc("POST /c2n/{token}", s.serveC2N)
	m.HandleFunc("POST /machine/set-dns", s.serveSetDNS)
	s.lockRoutes(m)
	// Notifications of nodes are accepted and dropped.
	for _, p := range []string{"POST /machine/update-health", "POST /machine/audit-log", "PATCH /machine/set-device-attr"} {
		m.HandleFunc(p, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxBody)); err != nil {
				s.log.Debug("Cannot read a request", "path", r.URL.Path, "error", err)
			}
			writeJSON(w, http.StatusOK, struct{}{})
		})
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.log.Info("Got an unknown request of a node", "method", r.Method, "path", r.URL.Path)
		http.Error(w, "not implemented", http.StatusNotImplemented)
	})
	return m
}

// readRequest decodes a node's request into each of vs, or answers 400.
func readRequest(w http.ResponseWriter, r *http.Request, vs ...any) bool {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read request", http.StatusBadRequest)
		return false
	}
	for _, v := range vs {
		if err := json.Unmarshal(b, v); err != nil {
			http.Error(w, "cannot decode request", http.StatusBadRequest)
			return false
		}
	}
	return true
}
