// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestAssignPorts(t *testing.T) {
	web := gatewayv1alpha1.Backend{Name: "web", Port: 8080}
	tls := gatewayv1alpha1.Backend{Name: "tls", Port: 8443, VIPPort: ptr.To[int32](443)}
	type want struct {
		ports  map[int32]string
		reason xpv2.ConditionReason
		err    string
	}
	weighed, preferred, all, portless := web, web, web, web
	portless.Port = 0
	weighed.Weight, preferred.Priority = ptr.To[gatewayv1alpha1.Weight](2), ptr.To[int32](1)
	usual := web
	usual.Weight, usual.Priority = ptr.To[gatewayv1alpha1.Weight](1), ptr.To[int32](0)
	all.ProxyProtocol = gatewayv1alpha1.ProxyProtocolV2
	cases := map[string]struct {
		reason   string
		ports    []gatewayv1alpha1.ServicePort
		backends []gatewayv1alpha1.Backend
		strategy gatewayv1alpha1.Strategy
		failover *gatewayv1alpha1.Failover
		weights  map[string]gatewayv1alpha1.Weight
		routed   bool
		want     want
	}{
		"One": {
			reason:   "A backend without vipPort answers all ports",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80", "tcp:8080"},
			backends: []gatewayv1alpha1.Backend{web},
			want:     want{ports: map[int32]string{80: "web", 8080: "web"}},
		},
		"Named": {
			reason:   "A backend with vipPort answers that port, the other the rest",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443", "tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{ports: map[int32]string{80: "web", 443: "tls"}},
		},
		"NothingLeft": {
			reason:   "A backend without a remaining port is no error",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{ports: map[int32]string{443: "tls"}},
		},
		"NoPort": {
			reason:   "Only a TailscaleGateway has a port for each port of the service",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{portless},
			want:     want{reason: meta.ReasonInvalidBackends, err: "spec.backends[0].port is required unless kind is TailscaleGateway"},
		},
		"None": {
			reason:   "A port without a backend cannot be served",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443", "tcp:80"},
			backends: []gatewayv1alpha1.Backend{tls},
			want:     want{reason: meta.ReasonInvalidBackends, err: "no backend answers port tcp:80; add one to spec.backends with vipPort 80"},
		},
		"Several": {
			reason:   "A port goes to one backend",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, web},
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "spec.backends[0], spec.backends[1] all answer port tcp:80; a port takes one backend, so give each a different vipPort, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"Unknown": {
			reason:   "A port must be one of the service",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{reason: meta.ReasonInvalidBackends, err: "spec.backends[1].vipPort 443 is not in spec.vipService.ports; add tcp:443 there"},
		},
		"RoundRobin": {
			reason:   "The default behavior of Kubernetes can be set",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyRoundRobin,
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"Strategy": {
			reason:   "A proxy has no other strategy, for any number of backends",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyFailover,
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "proxies do not know spec.loadBalancing.strategy failover; set round-robin, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"Weight": {
			reason:   "A proxy does not support weights",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{weighed},
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "proxies do not know spec.backends[0].weight 2; remove it, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"Priority": {
			reason:   "A proxy does not support priorities",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{preferred},
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "proxies do not know spec.backends[0].priority 1; remove it, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"Usual": {
			reason:   "Default values can be set",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{usual},
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"All": {
			reason:   "All ports map to the only backend",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{web},
			want:     want{ports: map[int32]string{0: "web"}},
		},
		"AllOfTwo": {
			reason:   "Two backends cannot share packets",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{reason: meta.ReasonInvalidBackends, err: "spec.vipService.ports do-not-validate takes one backend, without vipPort, and no other port"},
		},
		"AllWithHeader": {
			reason:   "The PROXY protocol is not possible for packets",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{all},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.vipService.ports do-not-validate hands on packets as they come; remove tls, proxyProtocol and protocol HTTP, or name ports",
			},
		},
		"RoutedStrategy": {
			reason:   "A Gateway whose routes name the object supports every strategy",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{weighed},
			strategy: gatewayv1alpha1.StrategyLeastConnections,
			routed:   true,
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"RoutedPriority": {
			reason:   "Proxies forward the port to the backend with the lowest priority",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{preferred, {Name: "api", Port: 80}},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}},
		},
		"RoutedWeight": {
			reason:   "Proxies forward the port to the backend with the highest weight of one priority",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{{Name: "api", Port: 80}, weighed},
			routed:   true,
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"RoutedWeights": {
			reason:   "Weights can be set by name",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80}},
			strategy: gatewayv1alpha1.StrategyWeighted,
			weights:  map[string]gatewayv1alpha1.Weight{"web": 10, "api": 90},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}},
		},
		"RoutedFailover": {
			reason:   "A failover has a primary",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80}},
			strategy: gatewayv1alpha1.StrategyFailover,
			failover: &gatewayv1alpha1.Failover{Primary: "api", Secondary: []gatewayv1alpha1.BackendName{"web"}},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}},
		},
		"UDP": {
			reason:   "The error for a port that the schema would reject names the field",
			ports:    []gatewayv1alpha1.ServicePort{"udp:53"},
			backends: []gatewayv1alpha1.Backend{web},
			want:     want{reason: meta.ReasonInvalidBackends, err: `spec.vipService.ports[0] "udp:53" is not tcp:PORT with PORT from 1 to 65535`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gatewayv1alpha1.TailscaleServicesSpec{
				VIPService: gatewayv1alpha1.VIPServiceTemplate{Ports: tc.ports},
				Backends:   tc.backends,
			}
			if tc.strategy != "" {
				spec.LoadBalancing = &gatewayv1alpha1.LoadBalancing{Strategy: tc.strategy, Failover: tc.failover, Weights: tc.weights}
			}
			assigned, err := assignPorts(spec, tc.routed)
			var got want
			if err != nil {
				got.reason, got.err = err.reason, err.Error()
			}
			for _, a := range assigned {
				if got.ports == nil {
					got.ports = map[int32]string{}
				}
				got.ports[a.port] = a.backend.Name
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAssignTLS(t *testing.T) {
	http := gatewayv1alpha1.Backend{Name: "web", Port: 8080, Protocol: gatewayv1alpha1.BackendProtocolHTTP}
	tcp := gatewayv1alpha1.Backend{Name: "web", Port: 8080}
	type want struct {
		TLS    map[int32]tailnetv1alpha1.AttachmentTLS
		Reason xpv2.ConditionReason
		Err    string
	}
	cases := map[string]struct {
		reason  string
		tls     gatewayv1alpha1.ServiceTLS
		ports   []gatewayv1alpha1.ServicePort
		backend gatewayv1alpha1.Backend
		want    want
	}{
		"Port443": {
			reason:  "Port 443 uses TLS if it exists",
			ports:   []gatewayv1alpha1.ServicePort{"tcp:80", "tcp:443"},
			backend: http,
			want:    want{TLS: map[int32]tailnetv1alpha1.AttachmentTLS{443: {}}},
		},
		"AllPorts": {
			reason:  "Without port 443 all ports use TLS",
			ports:   []gatewayv1alpha1.ServicePort{"tcp:5432", "tcp:6432"},
			backend: tcp,
			want:    want{TLS: map[int32]tailnetv1alpha1.AttachmentTLS{5432: {}, 6432: {}}},
		},
		"Named": {
			reason:  "Ports and a Secret can be set",
			tls:     gatewayv1alpha1.ServiceTLS{Ports: []int32{80}, CertificateRef: &gatewayv1alpha1.CertificateRef{Name: "web-tls"}},
			ports:   []gatewayv1alpha1.ServicePort{"tcp:80", "tcp:443"},
			backend: http,
			want:    want{TLS: map[int32]tailnetv1alpha1.AttachmentTLS{80: {SecretName: "web-tls"}}},
		},
		"Passthrough": {
			reason:  "TLS that the backend terminates is forwarded as TCP",
			tls:     gatewayv1alpha1.ServiceTLS{Mode: gatewayv1alpha1.TLSModePassthrough},
			ports:   []gatewayv1alpha1.ServicePort{"tcp:443"},
			backend: tcp,
		},
		"PassthroughHTTP": {
			reason:  "HTTP requests cannot be read from TLS that the backend terminates",
			tls:     gatewayv1alpha1.ServiceTLS{Mode: gatewayv1alpha1.TLSModePassthrough},
			ports:   []gatewayv1alpha1.ServicePort{"tcp:443"},
			backend: http,
			want: want{
				Reason: meta.ReasonInvalidTLS,
				Err:    "the backend of port tcp:443 has protocol HTTP, but spec.tls.mode Passthrough leaves its requests encrypted; set mode Terminate, or protocol TCP",
			},
		},
		"UnknownPort": {
			reason:  "A port must be one of the service",
			tls:     gatewayv1alpha1.ServiceTLS{Ports: []int32{8443}},
			ports:   []gatewayv1alpha1.ServicePort{"tcp:443"},
			backend: http,
			want:    want{Reason: meta.ReasonInvalidTLS, Err: "spec.tls.ports[0] 8443 is not in spec.vipService.ports; add tcp:8443 there"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assigned, err := assignPorts(gatewayv1alpha1.TailscaleServicesSpec{
				VIPService: gatewayv1alpha1.VIPServiceTemplate{Ports: tc.ports},
				Backends:   []gatewayv1alpha1.Backend{tc.backend},
				TLS:        &tc.tls,
			}, false)
			var got want
			if err != nil {
				got.Reason, got.Err = err.reason, err.Error()
			} else {
				for _, a := range assigned {
					if a.tls == nil {
						continue
					}
					if got.TLS == nil {
						got.TLS = map[int32]tailnetv1alpha1.AttachmentTLS{}
					}
					got.TLS[a.port] = *a.tls
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
