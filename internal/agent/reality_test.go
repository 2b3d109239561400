// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// TestApprovalNeedsAdvertise simulates a control server that accepts a machine as a host only
// when the machine advertises the service again after the approval (tailscale/tailscale#18821).
func TestApprovalNeedsAdvertise(t *testing.T) {
	l, _ := newLoop(t, t.TempDir())
	l.hosting.done = true
	healthy := make(chan struct{}, 1)
	l.prober = probe.NewProber(probe.CheckerFn(func(context.Context, probe.Target) (netip.Addr, error) { return netip.Addr{}, nil }), func() {
		select {
		case healthy <- struct{}{}:
		default:
		}
	})
	var reported *v1alpha1.MachineAgentStatus
	l.report.set = func(s *v1alpha1.MachineAgentStatus) { reported = s }
	l.setSecret(secret())
	l.setAttachments([]v1alpha1.ServiceAttachment{*attachment()})
	l.setTailnet(localapi.State{Session: 1, Running: true, AcceptedKnown: true})

	at := time.Unix(1000, 0)
	l.step(t.Context(), at)
	<-healthy
	type moment struct {
		Advertised       []string
		Next             time.Duration
		Readvertisements int32
	}
	written := func(elapsed time.Duration) moment {
		t.Helper()
		next := l.step(t.Context(), at.Add(elapsed))
		b, err := l.config.Read()
		if err != nil {
			t.Fatal(err)
		}
		advertised, err := plan.AdvertisedIn(b)
		if err != nil {
			t.Fatal(err)
		}
		return moment{Advertised: advertised, Next: next.Sub(at), Readvertisements: reported.Services[0].Readvertisements}
	}
	web := []string{"svc:web"}
	steps := []struct {
		reason   string
		elapsed  time.Duration
		accepted bool
		unknown  bool
		want     moment
	}{
		{reason: "The service is advertised as soon as a backend answers.", want: moment{Advertised: web, Next: acceptPatience}},
		{reason: "Control has not accepted the service in time: it is withdrawn.", elapsed: acceptPatience, want: moment{Next: acceptPatience + reloadPatience, Readvertisements: 1}},
		{reason: "The service is advertised again after a moment.", elapsed: acceptPatience + withdrawFor, want: moment{Advertised: web, Next: 3*acceptPatience + withdrawFor, Readvertisements: 1}},
		{reason: "An accepted service stays advertised.", elapsed: acceptPatience + withdrawFor + time.Second, accepted: true, want: moment{Advertised: web, Readvertisements: 1}},
		{reason: "A service whose acceptance is not known stays advertised.", elapsed: acceptPatience + withdrawFor + 2*time.Second, unknown: true, want: moment{Advertised: web, Readvertisements: 1}},
		{reason: "It stays so for as long as nothing is known.", elapsed: time.Hour, unknown: true, want: moment{Advertised: web, Readvertisements: 1}},
	}
	for _, s := range steps {
		l.setTailnet(localapi.State{Session: 1, Running: true, AcceptedKnown: !s.unknown, Accepted: map[string]bool{"svc:web": s.accepted}})
		got := written(s.elapsed)
		l.readvertise.services.reloaded(at.Add(s.elapsed), at.Add(s.elapsed))
		if s.accepted || s.unknown {
			got.Next = 0 // Nothing is due: there is no next time.
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("\n%s\n-want, +got:\n%s", s.reason, diff)
		}
	}
}
