// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"tailscale.com/ipn"

	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// zoneConfigMap has app.example.com at an address.
func zoneConfigMap(t *testing.T, address string) *corev1.ConfigMap {
	t.Helper()
	s, err := zone.Zone{
		Domains: []zone.Domain{{Name: "example.com"}},
		Names:   []zone.Name{{Name: "app.example.com", Addresses: []netip.Addr{netip.MustParseAddr(address)}}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-dns"},
		Data:       map[string]string{zone.ConfigMapKey: s},
	}
}

// freeDNSPort returns a port that is free for UDP and TCP.
func freeDNSPort(t *testing.T) uint16 {
	t.Helper()
	for {
		port := freePort(t)
		pc, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
		if err == nil {
			_ = pc.Close()
			return uint16(port)
		}
	}
}

// resolve a name at an address of the pod. It returns the address, or what came instead.
func (p *pod) resolve(network, at string) string {
	p.t.Helper()
	addr := netip.AddrPortFrom(netip.MustParseAddr(at), p.dnsPort).String()
	m, _, err := (&dns.Client{Net: network}).ExchangeContext(p.t.Context(), new(dns.Msg).SetQuestion("app.example.com.", dns.TypeA), addr)
	if err != nil {
		return "no answer"
	}
	if len(m.Answer) == 0 {
		return dns.RcodeToString[m.Rcode]
	}
	a, ok := m.Answer[0].(*dns.A)
	if !ok {
		return m.Answer[0].String()
	}
	return a.A.String()
}

func TestDNS(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), zoneConfigMap(t, "100.100.0.1"))
	p.dns, p.dnsPort = "set-dns", freeDNSPort(t)
	p.start()
	for _, network := range []string{"udp", "tcp"} {
		eventually(t, "A name must resolve.", "100.100.0.1", func() string { return p.resolve(network, "127.0.0.1") })
	}
	if err := p.kube.Update(t.Context(), zoneConfigMap(t, "100.100.0.2")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "A change must be followed without a restart.", "100.100.0.2", func() string { return p.resolve("udp", "127.0.0.1") })

	useless := zoneConfigMap(t, "100.100.0.2")
	useless.Data[zone.ConfigMapKey] = "{"
	if err := p.kube.Update(t.Context(), useless); err != nil {
		t.Fatal(err)
	}
	eventually(t, "A zone that cannot be read must be told of.", true, func() bool { return strings.Contains(p.logged.String(), "Cannot use ConfigMap") })
	if got := p.resolve("udp", "127.0.0.1"); got != "100.100.0.2" {
		t.Errorf("A zone that cannot be read must change nothing, got %s", got)
	}

	p.stop()
	if got := p.resolve("tcp", "127.0.0.1"); got != "no answer" {
		t.Errorf("An agent that has ended must not answer, got %s", got)
	}
	p.away.Store(true)
	p.start()
	eventually(t, "An agent that starts while the API server is away must know what it knew.", "100.100.0.2", func() string { return p.resolve("udp", "127.0.0.1") })
}

func TestDNSKernel(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), zoneConfigMap(t, "100.100.0.1"))
	p.dns, p.dnsPort, p.kernel = "set-dns", freeDNSPort(t), true
	// The machine's address in the tailnet, for which another of the loopback stands.
	p.local.SetAddresses(netip.MustParseAddr("127.0.0.53"))
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "A name must resolve at the machine's address in the tailnet.", "100.100.0.1", func() string { return p.resolve("udp", "127.0.0.53") })
	if got := p.resolve("tcp", "127.0.0.1"); got != "no answer" {
		t.Errorf("Nobody must be answered elsewhere, got %s", got)
	}
	p.local.SetAddresses(netip.MustParseAddr("127.0.0.54"))
	eventually(t, "A new address must be followed.", "100.100.0.1", func() string { return p.resolve("udp", "127.0.0.54") })
	eventually(t, "An old address must be left.", "no answer", func() string { return p.resolve("tcp", "127.0.0.53") })
}
