// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"tailscale.com/client/tailscale/apitype"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// TestRefusedBackend checks that neither connections nor requests are forwarded to servers in
// the pod itself, whatever name the backend has.
func TestRefusedBackend(t *testing.T) {
	ca := newAuthority(t)
	backendAddr, got := backend(t)
	_, port, err := net.SplitHostPort(backendAddr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		c := newCluster()
		s, _ := newServer(t, c, "")
		s.opts.Control = address.Control
		s.opts.WhoIs = func(context.Context, string) (*apitype.WhoIsResponse, error) { return nil, io.EOF }
		tcp := plan.Termination{Listen: freeAddress(t), Secret: "web-tls", Backend: net.JoinHostPort(host, port)}
		requests := plan.Termination{Listen: freeAddress(t), Backend: net.JoinHostPort(host, port), HTTP: true}
		carried := plan.Termination{Listen: freeAddress(t), Backend: net.JoinHostPort(host, port)}
		set(t, s, tcp, requests, carried)
		c.update(t, "web-tls", ca.secret(1))

		client, _, err := ca.handshake(dial(t, tcp.Listen, someone))
		if err != nil {
			t.Fatalf("handshake: %v", err)
		}
		if answer, _ := io.ReadAll(client); len(answer) > 0 {
			t.Errorf("%s: want the connection closed, got %q", host, answer)
		}

		if answer, _ := io.ReadAll(dial(t, carried.Listen, someone)); len(answer) > 0 {
			t.Errorf("%s: want the connection closed, got %q", host, answer)
		}

		conn := dial(t, requests.Listen, someone)
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://web.example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		rsp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := rsp.Body.Close(); err != nil {
			t.Error(err)
		}
		tr.CloseIdleConnections()
		if rsp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: want 502, got %s", host, rsp.Status)
		}
	}
	select {
	case b := <-got:
		t.Errorf("A refused backend must get no data, and got %q", b)
	default:
	}
}
