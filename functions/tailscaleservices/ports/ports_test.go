// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"slices"
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
		shares map[int32][]string
		alone  []int32
		reason xpv2.ConditionReason
		err    string
	}
	api := gatewayv1alpha1.Backend{Name: "api", Port: 80}
	weighed, preferred, all, portless, idle := web, web, web, web, web
	idle.Weight = ptr.To[gatewayv1alpha1.Weight](0)
	portless.Port = 0
	weighed.Weight, preferred.Priority = ptr.To[gatewayv1alpha1.Weight](2), ptr.To[int32](1)
	usual := web
	usual.Weight, usual.Priority = ptr.To[gatewayv1alpha1.Weight](1), ptr.To[int32](0)
	all.ProxyProtocol = gatewayv1alpha1.ProxyProtocolV2
	secure, plain := web, web
	secure.Protocol, plain.Protocol = gatewayv1alpha1.BackendProtocolHTTPS, gatewayv1alpha1.BackendProtocolHTTP
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
			reason:   "Backends share a port, in the order of the spec",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, api},
			want:     want{ports: map[int32]string{80: "web"}, shares: map[int32][]string{80: {"web", "api"}}},
		},
		"SeveralOfOne": {
			reason:   "Each port has the backends that answer it",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443", "tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, tls, api},
			want:     want{ports: map[int32]string{80: "web", 443: "tls"}, shares: map[int32][]string{80: {"web", "api"}}},
		},
		"Mixed": {
			reason:   "A proxy speaks one protocol to the backends of a port",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80, Protocol: gatewayv1alpha1.BackendProtocolHTTP}},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.backends[0], spec.backends[1] all answer port tcp:80; give them the same protocol and proxyProtocol, or each a different vipPort",
			},
		},
		"RoutedMixed": {
			reason:   "A Gateway whose routes name the object does not care",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80, Protocol: gatewayv1alpha1.BackendProtocolHTTP}},
			routed:   true,
			want:     want{ports: map[int32]string{80: "web"}, alone: []int32{80}},
		},
		"TooMany": {
			reason:   "The number of backends of a port is limited",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: slices.Repeat([]gatewayv1alpha1.Backend{web}, 17),
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "17 backends answer port tcp:80, and proxies balance up to 16; remove some, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"WeightZero": {
			reason:   "A backend with the weight 0 receives nothing",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{idle, api},
			want:     want{ports: map[int32]string{80: "api"}},
		},
		"WeightsZero": {
			reason:   "A port on which nothing receives anything is a mistake",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{idle, idle},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.backends[0], spec.backends[1] all answer port tcp:80, and have the weight 0; give one of them a weight",
			},
		},
		"WeightsUnknown": {
			reason:   "A weight of no backend would go to others",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, api},
			strategy: gatewayv1alpha1.StrategyWeighted,
			weights:  map[string]gatewayv1alpha1.Weight{"web": 1, "ap": 9},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    `spec.loadBalancing.weights has "ap", which is the name of no backend; correct it, or remove it`,
			},
		},
		"FailoverUnknown": {
			reason:   "A failover to no backend would not take place",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, api},
			strategy: gatewayv1alpha1.StrategyFailover,
			failover: &gatewayv1alpha1.Failover{Primary: "api", Secondary: []gatewayv1alpha1.BackendName{"standby"}},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    `spec.loadBalancing.failover has "standby", which is the name of no backend; correct it, or remove it`,
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
			reason:   "A strategy has nothing to select among one backend",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyLeastConnections,
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"Weight": {
			reason:   "Nor has a weight an effect",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{weighed},
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"Priority": {
			reason:   "Nor has a priority",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{preferred},
			want:     want{ports: map[int32]string{80: "web"}},
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
		"AllWithStrategy": {
			reason:   "Packets are not balanced",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyLeastConnections,
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "spec.vipService.ports do-not-validate hands on packets, which proxies do not balance by spec.loadBalancing.strategy least-connections; set round-robin, name ports, let a Gateway balance them and name its TailscaleGateway as the one backend, or set spec.vipService.enabled to false if routes alone use them",
			},
		},
		"AllWithHTTPS": {
			reason:   "Packets get no headers, and no TLS",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{secure},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.vipService.ports do-not-validate hands on packets as they come; remove tls, proxyProtocol and protocol HTTP or HTTPS, or name ports",
			},
		},
		"HTTPSBesideHTTP": {
			reason:   "Backends of one port have one protocol",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{secure, plain},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.backends[0], spec.backends[1] all answer port tcp:80; give them the same protocol and proxyProtocol, or each a different vipPort",
			},
		},
		"AllWithHeader": {
			reason:   "The PROXY protocol is not possible for packets",
			ports:    []gatewayv1alpha1.ServicePort{"do-not-validate"},
			backends: []gatewayv1alpha1.Backend{all},
			want: want{
				reason: meta.ReasonInvalidBackends,
				err:    "spec.vipService.ports do-not-validate hands on packets as they come; remove tls, proxyProtocol and protocol HTTP or HTTPS, or name ports",
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
			reason:   "The backend with the lowest priority is the one of proxies that know one",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{preferred, {Name: "api", Port: 80}},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}, shares: map[int32][]string{80: {"web", "api"}}},
		},
		"RoutedWeight": {
			reason:   "Of one priority, it is the one with the highest weight",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{{Name: "api", Port: 80}, weighed},
			routed:   true,
			want:     want{ports: map[int32]string{80: "web"}, shares: map[int32][]string{80: {"api", "web"}}},
		},
		"RoutedWeights": {
			reason:   "Weights can be set by name",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80}},
			strategy: gatewayv1alpha1.StrategyWeighted,
			weights:  map[string]gatewayv1alpha1.Weight{"web": 10, "api": 90},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}, shares: map[int32][]string{80: {"web", "api"}}},
		},
		"RoutedFailover": {
			reason:   "A failover has a primary",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, {Name: "api", Port: 80}},
			strategy: gatewayv1alpha1.StrategyFailover,
			failover: &gatewayv1alpha1.Failover{Primary: "api", Secondary: []gatewayv1alpha1.BackendName{"web"}},
			routed:   true,
			want:     want{ports: map[int32]string{80: "api"}, shares: map[int32][]string{80: {"web", "api"}}},
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
				got.reason, got.err = err.Reason, err.Error()
			}
			for _, a := range assigned {
				if got.ports == nil {
					got.ports = map[int32]string{}
				}
				got.ports[a.Port] = a.Backend.Name
				if a.Alone {
					got.alone = append(got.alone, a.Port)
				}
				for _, sh := range a.Shares {
					if got.shares == nil {
						got.shares = map[int32][]string{}
					}
					got.shares[a.Port] = append(got.shares[a.Port], sh.Backend.Name)
				}
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
				got.Reason, got.Err = err.Reason, err.Error()
			} else {
				for _, a := range assigned {
					if a.TLS == nil {
						continue
					}
					if got.TLS == nil {
						got.TLS = map[int32]tailnetv1alpha1.AttachmentTLS{}
					}
					got.TLS[a.Port] = *a.TLS
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
