// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"testing"
	"time"

	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func TestHosting(t *testing.T) {
	web := []plan.Service{{Name: "svc:web", Advertise: true}}
	accepted := localapi.State{Session: 1, Running: true, AcceptedKnown: true, Accepted: map[string]bool{"svc:web": true}}
	pending := localapi.State{Session: 1, Running: true, AcceptedKnown: true}
	type moment struct {
		reason   string
		elapsed  time.Duration
		services []plan.Service
		unlisted bool
		tailnet  localapi.State
		want     string
	}
	const (
		joining = "Waiting for tailscaled to join the tailnet"
		reading = "Waiting to read the services of the pod"
		waiting = "Waiting for the tailnet to accept this machine as a host of svc:web"
	)
	cases := map[string][]moment{
		"Accepted": {
			{reason: "The node has not joined.", services: web, want: joining},
			{reason: "The services are not known.", tailnet: pending, unlisted: true, want: reading},
			{reason: "The backends have not been probed.", tailnet: pending, services: []plan.Service{{Name: "svc:web", Undecided: true}}, want: waiting},
			{reason: "Control has not accepted the machine.", elapsed: time.Second, tailnet: pending, services: web, want: waiting},
			{reason: "It has.", elapsed: 2 * time.Second, tailnet: accepted, services: web},
			{reason: "A new service does not make the pod unready.", elapsed: 3 * time.Second, tailnet: accepted, services: []plan.Service{web[0], {Name: "svc:x", Advertise: true}}},
			{reason: "Nor does an approval that is withdrawn.", elapsed: 4 * time.Second, tailnet: pending, services: web},
			{reason: "Nor does a tailscaled that restarts.", elapsed: 5 * time.Second, services: web},
		},
		"NeverApproved": {
			{reason: "Control has not accepted the machine.", tailnet: pending, services: web, want: waiting},
			{reason: "Somebody may approve it.", elapsed: DefaultPauses().Accept - time.Second, tailnet: pending, services: web, want: waiting},
			{reason: "Rollouts must not wait for ever.", elapsed: DefaultPauses().Accept, tailnet: pending, services: web},
		},
		"DeadBackend": {{reason: "A service whose backend does not answer is not advertised anywhere.", tailnet: pending, services: []plan.Service{{Name: "svc:web", Message: "No backend answers"}}}},
		"Unknown":     {{reason: "The acceptance is not known.", tailnet: localapi.State{Session: 1, Running: true}, services: web}},
		"NoServices":  {{reason: "There is nothing to host.", tailnet: pending}},
		"NotWritten":  {{reason: "An approval from before does not make a host.", tailnet: accepted, services: []plan.Service{{Name: "svc:x", Advertise: true}}, want: "Waiting for the tailnet to accept this machine as a host of svc:x"}},
	}
	for name, moments := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			l, _ := newLoop(t, t.TempDir())
			for _, m := range moments {
				f := facts{tailnet: m.tailnet, services: m.services, listed: !m.unlisted, advertised: []string{"svc:web"}}
				next := l.hosting.step(t.Context(), at.Add(m.elapsed), f)
				if l.hosting.waiting != m.want {
					t.Errorf("\n%s\nafter %s: want %q, got %q", m.reason, m.elapsed, m.want, l.hosting.waiting)
				}
				if m.want == waiting && !next.After(at.Add(m.elapsed)) {
					t.Errorf("after %s: nothing is due", m.elapsed)
				}
			}
		})
	}
}

// TestHostingReadiness checks the whole agent.
func TestHostingReadiness(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.accept = time.Hour
	p.start()
	readiness := func() string {
		_, body := p.get(sidecar.PathReadiness)
		return body
	}
	ready := func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	}
	p.local.Set(ipn.Running)
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "The pod must wait for an approval.", "Waiting for the tailnet to accept this machine as a host of svc:web\n", readiness)
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "An approved pod must be ready.", http.StatusOK, ready)

	p.stop()
	p.away.Store(true)
	p.local.Set(ipn.Running)
	p.start()
	eventually(t, "An agent that restarts must not make its pod unready.", http.StatusOK, ready)
}
