// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

var errBoom = errors.New("boom")

// newLoop returns a loop with real directories and without a prober's goroutines: the health of
// backends is unknown. It counts the checks of the API server.
func newLoop(t *testing.T, dir string) (*loop, *int) {
	t.Helper()
	checks := 0
	checker := probe.CheckerFn(func(ctx context.Context, _ probe.Target) (netip.Addr, error) {
		<-ctx.Done()
		return netip.Addr{}, ctx.Err()
	})
	log, metrics := logging.NewNopLogger(), NewMetrics()
	pauses, move := DefaultPauses(), 20*time.Second
	serve := atomicdir.New(filepath.Join(dir, "serve"), "serve-config.json")
	kernel := newKernel(nil, serve, nil)
	retry := &retrier{log: log, pause: pauses.Retry}
	api := &reachability{log: log, pause: pauses.Retry, check: func() { checks++ }}
	l := &loop{
		opts:         Options{Drain: move, Pauses: pauses},
		log:          log,
		metrics:      metrics,
		health:       newHealth(),
		prober:       probe.NewProber(checker, func() {}),
		retry:        retry,
		api:          api,
		tls:          &tlsRole{log: log, retry: retry, server: terminate.New(terminate.Options{Log: log})},
		certificates: &certificateRole{retry: retry, issuer: issue.None{}, offers: offers{}},
		routing:      &routingRole{patience: pauses.Primary, services: routing{}},
		readvertise:  &readvertiseRole{services: readvertising{}},
		hosting:      &hostingRole{log: log, patience: pauses.Accept},
		kernel:       kernel,
		recovery:     &recoverRole{log: log},
		drains: &drainRole{
			log: log, move: move, settle: pauses.Settle,
			find: func(d *drain, _ map[string]plan.Handlers) { d.destinations = destinations{} },
		},
		config:  atomicdir.New(filepath.Join(dir, "config"), meta.ConfigKey),
		reload:  func() {},
		serving: serving{log: log, metrics: metrics, api: api, dir: serve, kernel: kernel, move: move},
		hold:    hold{log: log, pause: pauses.Retry},
		report:  report{set: func(*v1alpha1.MachineAgentStatus) {}},
	}
	l.setRoles()
	if err := l.restore(t.Context()); err != nil {
		t.Fatalf("restore(): %v", err)
	}
	return l, &checks
}

// TestVersion checks that the report keeps the version of a tailscaled that starts over and over.
func TestVersion(t *testing.T) {
	at := time.Unix(1000, 0)
	l, _ := newLoop(t, t.TempDir())
	got := ""
	l.report.set = func(s *v1alpha1.MachineAgentStatus) { got = s.TailscaledVersion }
	l.setSecret(secret())
	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	for _, s := range []localapi.State{{Session: 1, Version: "1.86.2"}, {Session: 1}, {Session: 2}} {
		l.setTailnet(s)
		l.step(t.Context(), at)
		if got != "1.86.2" {
			t.Errorf("report in session %d: want version 1.86.2, got %q", s.Session, got)
		}
	}
}

func TestLeavingWhileAPIServerAway(t *testing.T) {
	at := time.Unix(1000, 0)
	l, checks := newLoop(t, t.TempDir())
	l.setSecret(secret())
	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	l.step(t.Context(), at)
	served := map[string]plan.Handlers{"svc:web": {80: {Forward: "127.36.0.1:16464", ProxyProtocol: 2}}}

	l.setAttachments(nil)
	next := l.step(t.Context(), at)
	if diff := cmp.Diff(served, l.serving.handlers); diff != "" {
		t.Errorf("Handlers must stay while clients move: -want, +got:\n%s", diff)
	}
	if want := at.Add(20 * time.Second); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when the handlers are due for removal", next, want)
	}

	at = next
	l.step(t.Context(), at)
	if *checks != 1 {
		t.Errorf("The API server must be checked once before handlers are removed, was %d times", *checks)
	}
	l.step(t.Context(), at)
	if *checks != 1 {
		t.Errorf("The API server must not be checked again while a check is under way, was %d times", *checks)
	}

	l.api.set(at, errBoom)
	next = l.step(t.Context(), at)
	if diff := cmp.Diff(served, l.serving.handlers); diff != "" {
		t.Errorf("Handlers must stay while the API server is unavailable: -want, +got:\n%s", diff)
	}
	if want := at.Add(l.opts.Pauses.Retry); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when to check again", next, want)
	}

	at = next
	l.step(t.Context(), at)
	l.api.set(at, nil)
	next = l.step(t.Context(), at)
	if diff := cmp.Diff(map[string]plan.Handlers{}, l.serving.handlers); diff != "" {
		t.Errorf("Handlers must be removed once the API server answers: -want, +got:\n%s", diff)
	}
	if !next.IsZero() {
		t.Errorf("step(...) = %s, want none when there is nothing to do", next)
	}
}

func TestComeBackWhileLeaving(t *testing.T) {
	at := time.Unix(1000, 0)
	l, _ := newLoop(t, t.TempDir())
	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	l.step(t.Context(), at)
	l.setAttachments(nil)
	l.step(t.Context(), at)
	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	if next := l.step(t.Context(), at.Add(time.Second)); !next.IsZero() {
		t.Errorf("step(...) = %s, want none: a service that is wanted again must not leave", next)
	}
	l.setAttachments(nil)
	if next, want := l.step(t.Context(), at.Add(10*time.Second)), at.Add(30*time.Second); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when the service leaves again", next, want)
	}
}

func TestRestore(t *testing.T) {
	dir := t.TempDir()
	first, _ := newLoop(t, dir)
	first.setSecret(secret())
	first.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	first.advertised = []string{"svc:web"}
	first.step(t.Context(), time.Unix(1000, 0))

	l, _ := newLoop(t, dir)
	l.step(t.Context(), time.Unix(2000, 0))
	if diff := cmp.Diff([]string{"svc:web"}, l.advertised); diff != "" {
		t.Errorf("Services must stay advertised until attachments are listed: -want, +got:\n%s", diff)
	}
	if msg := l.health.startup(); msg != "" {
		t.Errorf("A restarted agent must have started: %s", msg)
	}

	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	l.step(t.Context(), time.Unix(2001, 0))
	if diff := cmp.Diff([]string{"svc:web"}, l.advertised); diff != "" {
		t.Errorf("Services must stay advertised until backends are probed: -want, +got:\n%s", diff)
	}
}

func TestRestoreGarbage(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []*atomicdir.Dir{
		atomicdir.New(filepath.Join(dir, "config"), meta.ConfigKey),
		atomicdir.New(filepath.Join(dir, "serve"), "serve-config.json"),
	} {
		if _, err := d.Write([]byte("garbage")); err != nil {
			t.Fatalf("Write(...): %v", err)
		}
	}
	l, _ := newLoop(t, dir)
	l.step(t.Context(), time.Unix(1000, 0))
	if l.health.startup() == "" {
		t.Error("Containerboot must not start with invalid files")
	}
	l.setSecret(secret())
	l.step(t.Context(), time.Unix(1001, 0))
	if msg := l.health.startup(); msg != "" {
		t.Errorf("Files must be written again: %s", msg)
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config"), nil, 0o600); err != nil {
		t.Fatalf("WriteFile(...): %v", err)
	}
	l, _ := newLoop(t, filepath.Join(dir, "none"))
	// A file is in place of the directory.
	l.config = atomicdir.New(filepath.Join(dir, "config", "set-0"), meta.ConfigKey)
	l.setSecret(secret())
	at := time.Unix(1000, 0)
	if next, want := l.step(t.Context(), at), at.Add(l.opts.Pauses.Retry); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when to retry", next, want)
	}
	if l.health.startup() == "" {
		t.Error("Containerboot must not start without its config")
	}
}

func TestDrainSessions(t *testing.T) {
	at := time.Unix(1000, 0)
	l, _ := newLoop(t, t.TempDir())
	l.setSecret(secret())
	l.advertised = []string{"svc:web"}
	l.setTailnet(localapi.State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
	l.step(t.Context(), at)

	done := l.startDrain(at)
	if l.startDrain(at) != done {
		t.Error("A second stop must wait for the first one's drain")
	}
	if next, want := l.step(t.Context(), at), at.Add(20*time.Second); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when the drain ends", next, want)
	}

	// The stream to tailscaled broke, and is back.
	l.setTailnet(localapi.State{Session: 2, Running: true})
	l.step(t.Context(), at.Add(time.Second))
	select {
	case <-done:
		t.Error("A broken stream must not end the drain")
	default:
	}

	l.setTailnet(localapi.State{Session: 2})
	l.step(t.Context(), at.Add(2*time.Second))
	select {
	case <-done:
	default:
		t.Error("A drain must end when tailscaled is gone")
	}
	// Tailscaled answers once more while it stops.
	l.setTailnet(localapi.State{Session: 3, Running: true})
	if next, want := l.step(t.Context(), at.Add(3*time.Second)), at.Add(3*time.Second+l.opts.Pauses.Settle); !next.Equal(want) {
		t.Errorf("step(...) = %s, want %s, when another tailscaled has settled", next, want)
	}
	l.setTailnet(localapi.State{Session: 3})
	l.step(t.Context(), at.Add(4*time.Second))
	if next := l.step(t.Context(), at.Add(10*time.Second)); !next.IsZero() || l.drains.current == nil {
		t.Error("A stopping tailscaled that answers must not advertise services")
	}

	// Kubelet has restarted the container.
	l.setTailnet(localapi.State{Session: 4, Running: true})
	l.step(t.Context(), at.Add(11*time.Second))
	l.step(t.Context(), at.Add(11*time.Second+l.opts.Pauses.Settle))
	if l.drains.current != nil {
		t.Error("A restarted tailscaled must advertise services again")
	}
}

func TestDrainThroughBrokenStream(t *testing.T) {
	at := time.Unix(1000, 0)
	l, _ := newLoop(t, t.TempDir())
	l.setSecret(secret())
	l.advertised = []string{"svc:web"}
	l.setTailnet(localapi.State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
	l.step(t.Context(), at)
	l.startDrain(at)

	// The stream broke during the drain; the tailscaled is the same.
	l.setTailnet(localapi.State{Session: 2, Running: true})
	for _, elapsed := range []time.Duration{time.Second, 20 * time.Second, 30 * time.Second, time.Minute} {
		l.step(t.Context(), at.Add(elapsed))
	}
	if !l.drains.current.over() || len(l.advertised) != 0 {
		t.Errorf("A pod that is being stopped must not advertise again: over %t, advertised %v", l.drains.current.over(), l.advertised)
	}
}

func TestDrainAbandoned(t *testing.T) {
	at := time.Unix(1000, 0)
	l, _ := newLoop(t, t.TempDir())
	l.drains.grace = time.Minute
	l.setSecret(secret())
	l.advertised = []string{"svc:web"}
	l.setTailnet(localapi.State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
	l.step(t.Context(), at)
	first := l.drains.draining()
	l.startDrain(at)
	release(l, "svc:web")
	l.step(t.Context(), at)
	select {
	case <-first:
	default:
		t.Error("A waiting hook must be notified when a drain begins")
	}

	next := l.step(t.Context(), at.Add(l.opts.Drain))
	if want := at.Add(l.drains.grace + graceMargin); !next.Equal(want) || l.drains.current == nil {
		t.Errorf("step(...) = %s, want %s, when kubelet would have killed tailscaled", next, want)
	}
	l.step(t.Context(), next.Add(-time.Second))
	if l.drains.current == nil {
		t.Error("A drain must not end within the grace period")
	}
	l.step(t.Context(), next)
	if l.drains.current != nil {
		t.Error("A pod that runs on after its grace period must serve again")
	}
	select {
	case <-l.drains.draining():
		t.Error("The next drain must not have begun")
	default:
	}
	l.startDrain(next)
	if l.drains.current == nil {
		t.Error("The pod must drain when it is stopped later")
	}
}
