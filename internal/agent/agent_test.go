// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func TestLife(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine())
	p.start()

	eventually(t, "Startup must wait for the config Secret, and say so.", true, func() bool {
		code, body := p.get(sidecar.PathStartup)
		return code == http.StatusServiceUnavailable && strings.Contains(body, "default/set-0-config")
	})

	if err := p.kube.Create(t.Context(), secret()); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	eventually(t, "The first start must write empty files.", [2]string{configNone, serveNone}, p.files)
	eventually(t, "Containerboot may start then.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathStartup)
		return code
	})
	if code, body := p.get(sidecar.PathLiveness); code != http.StatusOK {
		t.Errorf("A running agent must be alive, got %d: %s", code, body)
	}
	if code, body := p.get(sidecar.PathReadiness); code != http.StatusServiceUnavailable {
		t.Errorf("A pod that has not joined must not be ready, got %d: %s", code, body)
	}

	p.local.Set(ipn.Running)
	eventually(t, "A pod without services must be ready once it has joined.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	})
	if err := p.kube.Create(t.Context(), attachment()); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	eventually(t, "A service with a healthy backend must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "The report must say that control has not accepted the service.", v1alpha1.HostedService{
		Name: "svc:web", Advertised: true, Routed: v1alpha1.RoutingUnknown, HealthyBackends: 1, TotalBackends: 1, Ports: []string{"tcp:80"},
		Message: "Waiting for the tailnet to accept this machine as a host of the service; it may have to be approved",
	}, p.service)

	p.local.Set(ipn.Running, "svc:web")
	accepted := v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingUnknown, HealthyBackends: 1, TotalBackends: 1, Ports: []string{"tcp:80"}}
	eventually(t, "The report must say that control has accepted the service.", accepted, p.service)
	if p.local.Reloads() == 0 {
		t.Error("Tailscaled must get a request to reload its config")
	}

	p.healthy.Store(false)
	eventually(t, "An unhealthy service must be withdrawn but keep its handlers.", [2]string{configNone, serveWeb}, p.files)
	eventually(t, "The report must say why.", v1alpha1.HostedService{
		Name: "svc:web", Accepted: true, Routed: v1alpha1.RoutingUnknown, TotalBackends: 1, Ports: []string{"tcp:80"}, UnhealthyPorts: []string{"tcp:80"},
		Message: "No backend answers: web.default.svc:8080 (cannot connect)",
	}, p.service)

	p.healthy.Store(true)
	eventually(t, "A service that is healthy again must be advertised again.", [2]string{configWeb, serveWeb}, p.files)
	eventually(t, "That must be reported.", accepted, p.service)

	s := secret()
	if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatalf("Get(...): %v", err)
	}
	s.Data[meta.ConfigKey] = []byte(`{"Version":"alpha0","AuthKey":"tskey-auth-2"}`)
	if err := p.kube.Update(t.Context(), s); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	eventually(t, "A new key must reach containerboot.", strings.ReplaceAll(configWeb, "auth-1", "auth-2"), func() string { return p.files()[0] })

	removed := time.Now()
	if err := p.kube.Delete(t.Context(), attachment()); err != nil {
		t.Fatalf("Delete(...): %v", err)
	}
	eventually(t, "A service that is no longer wanted must be withdrawn.", strings.ReplaceAll(configNone, "auth-1", "auth-2"), func() string { return p.files()[0] })
	eventually(t, "Its handlers must be removed in the end.", serveNone, func() string { return p.files()[1] })
	if took := time.Since(removed); took < drainTime {
		t.Errorf("Handlers were removed after %s, want %s at least", took, drainTime)
	}
	eventually(t, "It must not be reported any more.", v1alpha1.HostedService{}, p.service)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)
	p.stop()

	p.away.Store(true)
	p.start()
	eventually(t, "A restarted agent must start while the API server is unavailable.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathStartup)
		return code
	})
	if diff := cmp.Diff([2]string{configWeb, serveWeb}, p.files()); diff != "" {
		t.Errorf("A restarted agent must leave the files as they are: -want, +got:\n%s", diff)
	}

	p.healthy.Store(false)
	p.away.Store(false)
	eventually(t, "It must act once attachments are listed and their backends are probed.", [2]string{configNone, serveByName}, p.files)
}

func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "The service must be advertised.", [2]string{configWeb, serveWeb}, p.files)

	p.away.Store(true)
	p.healthy.Store(false)
	eventually(t, "An unhealthy service must be withdrawn without the API server.", [2]string{configNone, serveWeb}, p.files)
	p.healthy.Store(true)
	eventually(t, "It must be advertised again without the API server.", [2]string{configWeb, serveWeb}, p.files)

	p.away.Store(false)
	eventually(t, "The current state must be reported when the API server is back.", true, func() bool {
		s := p.service()
		return s.Advertised && s.HealthyBackends == 1
	})
}

func TestPreStop(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		accepted []string
		drains   bool
	}{
		"Accepted":    {reason: "Clients of a service must be given time to move.", accepted: []string{"svc:web"}, drains: true},
		"NotAccepted": {reason: "Without an accepted service there is no client to wait for."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, machine(), secret(), attachment())
			p.start()
			p.local.Set(ipn.Running, tc.accepted...)
			eventually(t, "The service must be advertised and its acceptance known.", v1alpha1.HostedService{
				Name: "svc:web", Advertised: true, Accepted: len(tc.accepted) > 0,
			}, func() v1alpha1.HostedService {
				s := p.service()
				return v1alpha1.HostedService{Name: s.Name, Advertised: s.Advertised, Accepted: s.Accepted}
			})

			start := time.Now()
			p.preStop()
			if drained := time.Since(start) >= drainTime; drained != tc.drains {
				t.Errorf("\n%s\nIt took %s with a drain of %s", tc.reason, time.Since(start), drainTime)
			}
			if diff := cmp.Diff([2]string{configNone, serveWeb}, p.files()); diff != "" {
				t.Errorf("\nServices must be withdrawn but keep their handlers: -want, +got:\n%s", diff)
			}
			if code, _ := p.get(sidecar.PathReadiness); code != http.StatusServiceUnavailable {
				t.Errorf("A stopping pod must not be ready, got %d", code)
			}

			p.local.Stop()
			p.local.Start()
			p.local.Set(ipn.Running)
			eventually(t, "A new tailscaled in the same pod must advertise the service again.", [2]string{configWeb, serveWeb}, p.files)
			eventually(t, "It must be ready again.", http.StatusOK, func() int {
				code, _ := p.get(sidecar.PathReadiness)
				return code
			})
		})
	}
}

func TestUselessSecret(t *testing.T) {
	t.Parallel()
	s := secret()
	s.Data[meta.ConfigKey] = []byte(`{"Version":"alpha0","AuthKeys":"tskey-auth-1"}`)
	p := newPod(t, machine(), s)
	p.start()
	var body string
	eventually(t, "The startup probe must say that the Secret cannot be used.", true, func() bool {
		_, body = p.get(sidecar.PathStartup)
		return strings.Contains(body, "cannot use key cap-106.hujson")
	})
	if strings.Contains(body, "tskey") {
		t.Errorf("The answer must not contain the key: %s", body)
	}
	if diff := cmp.Diff("", p.files()[0]); diff != "" {
		t.Errorf("The config must not reach tailscaled: -want, +got:\n%s", diff)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), attachment())
	p.start()
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "Metrics must include services.", true, func() bool {
		_, body := p.get(sidecar.PathMetrics)
		return strings.Contains(body, `tailscale_gateway_agent_services{state="accepted"} 1`) &&
			strings.Contains(body, `tailscale_gateway_agent_writes_total{file="serve"}`)
	})
}
