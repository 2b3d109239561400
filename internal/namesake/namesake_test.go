// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package namesake

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

func TestFill(t *testing.T) {
	spec := func(ports []gatewayv1alpha1.ServicePort, backends ...gatewayv1alpha1.Backend) gatewayv1alpha1.TailscaleServicesSpec {
		return gatewayv1alpha1.TailscaleServicesSpec{VIPService: gatewayv1alpha1.VIPServiceTemplate{Ports: ports}, Backends: backends}
	}
	service := func(ports ...int32) Service {
		return Service{Namespace: "shop", Name: "web", Exists: true, Ports: ports}
	}
	type ports = []gatewayv1alpha1.ServicePort
	cases := map[string]struct {
		reason  string
		spec    gatewayv1alpha1.TailscaleServicesSpec
		service Service

		// want lists the ports with their backends, in order.
		want []string

		wantProblem *Problem
	}{
		"SamePort": {
			reason:  "A port goes to the Service's port of the same number.",
			spec:    spec(ports{"tcp:80", "tcp:443"}),
			service: service(443, 8080, 80),
			want:    []string{"80 web:80", "443 web:443"},
		},
		"OnlyPort": {
			reason:  "A Service with one port receives all ports.",
			spec:    spec(ports{"tcp:80", "tcp:443"}),
			service: service(8080),
			want:    []string{"80 web:8080", "443 web:8080"},
		},
		"OtherPorts": {
			reason:      "The user must select one of several ports.",
			spec:        spec(ports{"tcp:443"}),
			service:     service(8080, 80),
			wantProblem: &Problem{Message: `Service "web" has no port 443, only 80, 8080; add it there, or say in spec.backends which port answers`},
		},
		"NoPorts": {
			reason:  "The Service's ports are those of the Tailscale Service.",
			spec:    spec(nil),
			service: service(443, 80),
			want:    []string{"80 web:80", "443 web:443"},
		},
		"AllPorts": {
			reason:      "do-not-validate needs a port to probe.",
			spec:        spec(ports{gatewayv1alpha1.ServicePortAll}),
			service:     service(80),
			wantProblem: &Problem{Message: "spec.vipService.ports do-not-validate needs spec.backends, which say what answers"},
		},
		"NoService": {
			reason:      "A missing Service can be created later.",
			spec:        spec(ports{"tcp:80"}),
			service:     Service{Namespace: "shop", Name: "web"},
			wantProblem: &Problem{Missing: true, Message: `there is no Service "web" in namespace "shop"; create it, or set spec.backends`},
		},
		"UDP": {
			reason:      "Tailscale Services support only TCP ports.",
			spec:        spec(ports{"tcp:80"}),
			service:     service(),
			wantProblem: &Problem{Message: `Service "web" has no port of TCP; add one, or set spec.backends`},
		},
		"Backends": {
			reason: "Explicit backends replace the Service with the object's name.",
			spec:   spec(ports{"tcp:80"}, gatewayv1alpha1.Backend{Name: "api", Port: 8080}),
			want:   []string{"rest api:8080"},
		},
		"BackendsNoPorts": {
			reason: "Each backend serves its vipPort, or its port.",
			spec:   spec(nil, gatewayv1alpha1.Backend{Name: "api", Port: 8080}, gatewayv1alpha1.Backend{Name: "web", Port: 8443, VIPPort: ptr.To[int32](443)}),
			want:   []string{"8080 api:8080", "443 web:8443"},
		},
		"GatewayNoPorts": {
			reason:      "A TailscaleGateway without ports is ambiguous.",
			spec:        spec(nil, gatewayv1alpha1.Backend{Kind: gatewayv1alpha1.BackendKindGateway, Name: "gw"}),
			wantProblem: &Problem{Message: "spec.backends[0] says no port; set its port or vipPort, or spec.vipService.ports"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, problem := Fill(tc.spec, tc.service)
			if diff := cmp.Diff(tc.wantProblem, problem); diff != "" {
				t.Fatalf("%s\n-want problem, +got:\n%s", tc.reason, diff)
			}
			if problem != nil {
				return
			}
			var backends []string
			for _, b := range got.Backends {
				vip := "rest"
				if b.VIPPort != nil {
					vip = strconv.Itoa(int(*b.VIPPort))
					if p := servicePort(*b.VIPPort); !slices.Contains(got.VIPService.Ports, p) {
						t.Errorf("%s: %s is not in %v", tc.reason, p, got.VIPService.Ports)
					}
				}
				backends = append(backends, fmt.Sprintf("%s %s:%d", vip, b.Name, b.Port))
			}
			if diff := cmp.Diff(tc.want, backends); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
