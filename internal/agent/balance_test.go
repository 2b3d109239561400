// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestBalanced checks the whole agent: tailscaled forwards a port with several backends to the agent,
// and the service is withdrawn only if none of them answers.
func TestBalanced(t *testing.T) {
	t.Parallel()
	a := attachment()
	web := *a.Spec.Ports[0].Backend
	a.Spec.Ports[0].Backends = []v1alpha1.AttachmentShare{
		{AttachmentBackend: v1alpha1.AttachmentBackend{Host: "dead.default.svc", Port: 8080}, Weight: 9},
		{AttachmentBackend: web, Weight: 1, Priority: 1},
	}
	p := newPod(t, secret(), machine(), a)
	p.start()
	p.local.Set(ipn.Running, "svc:web")
	config := func() string { return p.files()[0] }
	eventually(t, "One backend that answers is enough.", configWeb, config)
	eventually(t, "The report must name the other, and no port.", v1alpha1.HostedService{
		Name: "svc:web", Advertised: true, Accepted: true, Routed: v1alpha1.RoutingUnknown, HealthyBackends: 1, TotalBackends: 2,
		Ports:   []string{"tcp:80"},
		Message: "Other backends of the port receive all connections, because these do not answer: dead.default.svc:8080 (cannot connect)",
	}, p.service)
	want := `{"Services":{"svc:web":{"TCP":{"80":{"TCPForward":"127.36.0.1:16464","ProxyProtocol":2}}}}}`
	if diff := cmp.Diff(want, p.files()[1]); diff != "" {
		t.Errorf("Tailscaled must forward to the agent: -want, +got:\n%s", diff)
	}

	p.healthy.Store(false)
	eventually(t, "Without a backend the service must be withdrawn.", configNone, config)
	eventually(t, "The report must name the port.", []string{"tcp:80"}, func() []string { return p.service().UnhealthyPorts })
	p.healthy.Store(true)
	eventually(t, "It must return with its backend.", configWeb, config)
}
