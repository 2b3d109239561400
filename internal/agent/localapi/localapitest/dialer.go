// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapitest

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// A Dialer opens connections into the tailnet.
type Dialer struct {
	t *testing.T

	mu        sync.Mutex
	dial      func(addr string) (net.Conn, error)
	addresses []string
}

// SetDial sets the function that opens connections into the tailnet. An address for which it
// returns nil is outside of the tailnet.
func (d *Dialer) SetDial(fn func(addr string) (net.Conn, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dial = fn
}

// Dialled returns the addresses that clients requested to dial.
func (d *Dialer) Dialled() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.addresses)
}

// serveDial closes both connections when one of them has ended, as tailscaled does.
func (d *Dialer) serveDial(w http.ResponseWriter, r *http.Request) {
	addr := net.JoinHostPort(r.Header.Get("Dial-Host"), r.Header.Get("Dial-Port"))
	d.mu.Lock()
	d.addresses = append(d.addresses, addr)
	dial := d.dial
	d.mu.Unlock()

	var out net.Conn
	var err error
	if dial != nil {
		out, err = dial(addr)
	}
	switch {
	case err != nil:
		http.Error(w, "dial failure: "+err.Error(), http.StatusBadGateway)
		return
	case out == nil:
		w.Header().Set("Dial-Self", "true")
		w.Header().Set("Dial-Addr", addr)
		w.WriteHeader(http.StatusOK)
		return
	}
	defer func() { _ = out.Close() }()
	w.Header().Set("Upgrade", "ts-dial")
	w.Header().Set("Connection", "upgrade")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		d.t.Errorf("cannot take over connection: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	if rw.Flush() != nil {
		return
	}
	done := make(chan struct{}, 2)
	pipe := func(dst io.Writer, src io.Reader) {
		// The copy ends when either connection ends.
		_, _ = io.Copy(dst, src)
		done <- struct{}{}
	}
	go pipe(conn, out)
	go pipe(out, rw)
	<-done
}
