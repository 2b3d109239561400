// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
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

// TestDrained checks how long the hook of the tailscale container waits for the agent's hook.
func TestDrained(t *testing.T) {
	cases := map[string]struct {
		reason string
		// failed is for how long the tailscale container has failed its liveness probe, and restart asks
		// for its restart.
		failed  time.Duration
		restart bool
		// begin is when the agent's hook begins a drain. Zero for never.
		begin time.Duration
		want  time.Duration
	}{
		"Late":    {reason: "On a busy machine, the command of the agent's hook can take long to start.", begin: 16 * time.Second, want: 36 * time.Second},
		"Restart": {reason: "No drain begins when kubelet only restarts the container.", want: time.Minute},
		"Slow":    {reason: "A tailscaled that has not responded for a moment may have clients.", failed: 30 * time.Second, begin: 16 * time.Second, want: 36 * time.Second},
		"Hung":    {reason: "A tailscaled that hangs must restart soon.", failed: 90 * time.Second, want: 10 * time.Second},
		"Wanted":  {reason: "So must one whose restart the agent asks for.", restart: true, want: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l, _ := newLoop(t, dir)
				l.advertised = []string{"svc:web"}
				l.setTailnet(localapi.State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
				a := New(Options{Pauses: DefaultPauses()}, nil, nil, nil, nil, NewMetrics(), logging.NewNopLogger())
				go l.run(t.Context(), a.commands)
				if tc.failed > 0 {
					a.health.setResponds(time.Now(), false)
					time.Sleep(tc.failed)
				}
				a.health.setRestart(tc.restart)
				start := time.Now()
				if tc.begin > 0 {
					time.AfterFunc(tc.begin, func() {
						a.preStop(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, sidecar.PathPreStop, http.NoBody))
					})
				}
				a.drained(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, sidecar.PathDrained, http.NoBody))
				if got := time.Since(start); got != tc.want {
					t.Errorf("\n%s\ndrained(...): want an answer after %s, got %s", tc.reason, tc.want, got)
				}
			})
		})
	}
}

func TestResponds(t *testing.T) {
	at := time.Unix(1000, 0)
	h := newHealth()
	h.setResponds(at, false)
	h.setResponds(at.Add(failingAfter), false)
	if !h.failing(at.Add(failingAfter)) {
		t.Error("failing(...): want a container that has not responded for a minute to fail")
	}
	h.setResponds(at.Add(failingAfter), true)
	h.setResponds(at.Add(failingAfter), false)
	if h.failing(at.Add(failingAfter + time.Second)) {
		t.Error("failing(...): want the time to begin again after an answer")
	}
}
