// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// service returns a service of a tailnet that two clusters share.
func service(tailnet string) *tailnetv1alpha1.VIPService {
	v := &tailnetv1alpha1.VIPService{}
	v.Spec.ManagedResourceSpec = xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(tailnet)}
	o := &v.Status.AtProvider
	o.Addresses, o.OwnServiceName, o.OwnAddresses = []string{"100.100.0.1"}, "svc:web-one", []string{"100.100.0.2"}
	o.Hosts = []tailnetv1alpha1.ServiceHost{{Name: "here", Local: true}, {Name: "there"}}
	o.Consumers = []tailnetv1alpha1.ServiceConsumer{{ServiceName: "svc:web-one"}, {ServiceName: "svc:web-two"}}
	return v
}

func TestNew(t *testing.T) {
	type want struct {
		Addresses, Own, Hosts, Remotes []string
		Moving                         bool
	}
	cases := map[string]struct {
		reason  string
		service *tailnetv1alpha1.VIPService
		shared  bool
		want    want
	}{
		"None":   {reason: "Nothing is known of a service that does not exist."},
		"Alone":  {reason: "All hosts are this cluster's unless others share the service.", service: service("corp"), want: want{Addresses: []string{"100.100.0.1"}, Own: []string{"100.100.0.2"}, Hosts: []string{"here", "there"}}},
		"Shared": {reason: "Hosts of other clusters are in their records.", service: service("corp"), shared: true, want: want{Addresses: []string{"100.100.0.1"}, Own: []string{"100.100.0.2"}, Hosts: []string{"here"}, Remotes: []string{"svc:web-two"}}},
		"Moving": {reason: "A service in another tailnet does not count.", service: service("lab"), shared: true, want: want{Moving: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := New(tc.service, "corp", tc.shared)
			got := want{Addresses: p.Addresses(), Own: p.OwnAddresses(), Moving: p.Moving}
			for _, h := range p.Hosts() {
				got.Hosts = append(got.Hosts, h.Name)
			}
			for _, c := range p.Remotes() {
				got.Remotes = append(got.Remotes, c.ServiceName)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsMachine(t *testing.T) {
	p := tailnetv1alpha1.ProxySet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	p.Spec.Endpoints, p.Spec.Sets = "proxies", []tailnetv1alpha1.ProxySetMember{{Name: "proxies-ingress", Replicas: 2}}
	host := names.Host("shop", names.Machine("proxies-ingress", 1))
	cases := map[string]struct {
		reason string
		host   tailnetv1alpha1.ServiceHost
		want   bool
	}{
		"Reported": {reason: "The provider knows the endpoints by the machine's node ID.", host: tailnetv1alpha1.ServiceHost{Name: "x", Endpoints: "proxies"}, want: true},
		"Other":    {reason: "A name does not count then.", host: tailnetv1alpha1.ServiceHost{Name: host, Endpoints: "other"}},
		"Name":     {reason: "Otherwise the name decides.", host: tailnetv1alpha1.ServiceHost{Name: host + ".example.ts.net"}, want: true},
		"Numbered": {reason: "Tailscale numbers names that are in use.", host: tailnetv1alpha1.ServiceHost{Name: host + "-1"}, want: true},
		"Unique":   {reason: "Machines request a name with a hash.", host: tailnetv1alpha1.ServiceHost{Name: host + "-0123abcd"}, want: true},
		"Beyond":   {reason: "A machine that is not wanted does not count.", host: tailnetv1alpha1.ServiceHost{Name: names.Host("shop", names.Machine("proxies-ingress", 9))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsMachine(p, tc.host); got != tc.want {
				t.Errorf("\n%s\nIsMachine(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
