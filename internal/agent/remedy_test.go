// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func request(t *testing.T, r meta.Remedy) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("Marshal(): %v", err)
	}
	return string(b)
}

func TestRemedy(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	advertise := meta.Remedy{Service: "svc:web", Action: v1alpha1.RemedyActionAdvertise, Deadline: at.Add(time.Minute)}
	restart := meta.Remedy{Service: "svc:web", Action: v1alpha1.RemedyActionRestart, Deadline: at.Add(time.Minute)}
	cases := map[string]struct {
		reason  string
		request *meta.Remedy
		elapsed time.Duration
		alive   bool
		busy    bool
		want    v1alpha1.RemedyAction
	}{
		"None":      {reason: "Without a request nothing happens."},
		"Advertise": {reason: "A dead service is withdrawn.", request: &advertise, want: v1alpha1.RemedyActionAdvertise},
		"Restart":   {reason: "Tailscaled restarts.", request: &restart, want: v1alpha1.RemedyActionRestart},
		"Late":      {reason: "A request that has expired is ignored, also after a restart of the pod.", request: &restart, elapsed: time.Minute},
		"Alive":     {reason: "A service that a host is primary for is left alone.", request: &advertise, alive: true},
		"Busy":      {reason: "A pod that is being stopped does nothing else.", request: &restart, busy: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &remedy{}
			if tc.request != nil {
				if err := m.set(request(t, *tc.request)); err != nil {
					t.Fatalf("set(): %v", err)
				}
			}
			dead := func(service string) bool { return !tc.alive && service == "svc:web" }
			if diff := cmp.Diff(tc.want, m.step(at.Add(tc.elapsed), dead, !tc.busy)); diff != "" {
				t.Errorf("\n%s\nstep(...): -want, +got:\n%s", tc.reason, diff)
			}
			if got := m.step(at.Add(tc.elapsed), dead, !tc.busy); got != "" {
				t.Errorf("\nA request is acted on once, got %q again", got)
			}
		})
	}
}

func TestRemedyText(t *testing.T) {
	m := &remedy{}
	if err := m.set("no JSON"); err == nil {
		t.Error("set(no JSON): want an error")
	}
	if got := m.step(time.Unix(1000, 0), func(string) bool { return true }, true); got != "" {
		t.Errorf("\nA request that cannot be read must be ignored, got %q", got)
	}
}

// TestWithdrawn checks the whole agent: a service with a port whose backend does not answer is
// reported, and withdrawn as long as the provider asks for it.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	a := attachment()
	a.Spec.Ports = append(a.Spec.Ports, v1alpha1.AttachmentPort{Port: 443, Backend: &v1alpha1.AttachmentBackend{Host: "dead.default.svc", Port: 8443}})
	p := newPod(t, secret(), machine(), a)
	p.start()
	config := func() string { return p.files()[0] }
	withdraw := func(deadline time.Time) {
		t.Helper()
		s := secret()
		if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatalf("Get(...): %v", err)
		}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationWithdraw("svc:web"), deadline.Format(time.RFC3339Nano))
		if err := p.kube.Update(t.Context(), s); err != nil {
			t.Fatalf("Update(...): %v", err)
		}
	}
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "One backend that answers is enough.", configWeb, config)
	eventually(t, "The report must name the ports.", v1alpha1.HostedService{
		Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingUnknown, HealthyBackends: 1, TotalBackends: 2,
		Ports: []string{"tcp:80", "tcp:443"}, UnhealthyPorts: []string{"tcp:443"},
	}, p.service)
	withdraw(time.Now().Add(time.Hour))
	eventually(t, "The service must be withdrawn.", configNone, config)
	withdraw(time.Now().Add(100 * time.Millisecond))
	eventually(t, "A withdrawal that is not renewed must end.", configWeb, config)
}

// TestRemedyAdvertises checks the whole agent: a service without a primary host is reported, and
// withdrawn and advertised again once the provider asks for it.
func TestRemedyAdvertises(t *testing.T) {
	t.Parallel()
	p := newPod(t, secret(), machine(), attachment())
	p.primary = 100 * time.Millisecond
	containerboot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(containerboot.Close)
	p.containerboot = containerboot.URL
	p.start()
	config := func() string { return p.files()[0] }
	routed := func() v1alpha1.Routing { return p.service().Routed }
	ask := func(action v1alpha1.RemedyAction) {
		t.Helper()
		s := secret()
		if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatalf("Get(...): %v", err)
		}
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, meta.AnnotationRemedy, request(t, meta.Remedy{Service: "svc:web", Action: action, Deadline: time.Now().Add(time.Hour)}))
		if err := p.kube.Update(t.Context(), s); err != nil {
			t.Fatalf("Update(...): %v", err)
		}
	}
	eventually(t, "The service must be advertised.", configWeb, config)
	p.local.SetPrimary(netip.MustParseAddr(attachment().Spec.Addresses[0]))
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "The machine is primary.", v1alpha1.RoutingTrue, routed)

	// The request comes first, and has no effect while the service is routed.
	ask(v1alpha1.RemedyActionAdvertise)
	p.local.SetPrimary()
	eventually(t, "A service without a primary host must be withdrawn.", configNone, config)
	eventually(t, "It must be reported, with the reason.", v1alpha1.HostedService{
		Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingFalse, HealthyBackends: 1, TotalBackends: 1, Ports: []string{"tcp:80"},
		Message: "The tailnet has accepted this machine as a host of the service and has made no host primary, so clients have no route to it",
	}, p.service)
	eventually(t, "The service must be advertised again.", configWeb, config)

	ask(v1alpha1.RemedyActionRestart)
	eventually(t, "Tailscaled must restart after a drain.", http.StatusServiceUnavailable, func() int {
		code, _ := p.get(sidecar.PathTailscale)
		return code
	})
	if diff := cmp.Diff(configNone, config()); diff != "" {
		t.Errorf("\nEvery service must be withdrawn before: -want, +got:\n%s", diff)
	}
	p.local.Stop()
	p.local.Start()
	p.local.SetPrimary(netip.MustParseAddr(attachment().Spec.Addresses[0]))
	p.local.Set(ipn.Running, "svc:web")
	eventually(t, "A restarted tailscaled must serve again.", configWeb, config)
	eventually(t, "It must not restart again.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathTailscale)
		return code
	})
	eventually(t, "The service is routed.", v1alpha1.RoutingTrue, routed)
}
