// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func TestListenHooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.sock")
	for _, run := range []string{"first", "second"} {
		l, err := ListenHooks(t.Context(), path)
		if err != nil {
			t.Fatalf("ListenHooks(...) of the %s run: %v", run, err)
		}
		// An agent that is killed leaves its socket behind.
		defer func() { _ = l.Close() }()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := fs.ModeSocket | socketMode; info.Mode() != want {
			t.Errorf("Only the agent's user may call hooks: want mode %s, got %s", want, info.Mode())
		}
	}
}

func TestPreStopWithoutAgent(t *testing.T) {
	if err := PreStop(t.Context(), filepath.Join(t.TempDir(), "agent.sock")); err == nil {
		t.Error("PreStop(...) must say when there is no agent")
	}
}

// TestNetworkWithdrawsNothing sends the agent all requests that a client on the pod network can
// send.
func TestNetworkWithdrawsNothing(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.begin = 50 * time.Millisecond
	p.start()
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "The pod must be ready.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	})

	if code, _ := p.get(sidecar.PathPreStop); code != http.StatusNotFound {
		t.Errorf("The pod network must have no hook that withdraws services, got %d", code)
	}
	if code, _ := p.get(sidecar.PathDrained); code != http.StatusOK {
		t.Errorf("A tailscale container that is only restarted must not wait for a drain, got %d", code)
	}
	if code, _ := p.get(sidecar.PathReadiness); code != http.StatusOK {
		t.Errorf("The pod must stay ready, got %d", code)
	}
	if diff := cmp.Diff([2]string{configWeb, serveWeb}, p.files()); diff != "" {
		t.Errorf("The service must stay advertised: -want, +got:\n%s", diff)
	}
}
