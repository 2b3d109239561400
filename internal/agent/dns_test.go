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

// zoneConfigMap returns a ConfigMap whose zone has app.example.com with the given address.
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

// resolve returns the address of a name, resolved at an address of the pod, or a text that
// describes any other result.
func (p *pod) resolve(network, ip string) string {
	p.t.Helper()
	addr := netip.AddrPortFrom(netip.MustParseAddr(ip), p.dnsPort).String()
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
	eventually(t, "A change must take effect without a restart.", "100.100.0.2", func() string { return p.resolve("udp", "127.0.0.1") })

	useless := zoneConfigMap(t, "100.100.0.2")
	useless.Data[zone.ConfigMapKey] = "{"
	if err := p.kube.Update(t.Context(), useless); err != nil {
		t.Fatal(err)
	}
	eventually(t, "A zone that cannot be read must be logged.", true, func() bool { return strings.Contains(p.logged.String(), "Cannot use ConfigMap") })
	if got := p.resolve("udp", "127.0.0.1"); got != "100.100.0.2" {
		t.Errorf("A zone that cannot be read must change nothing, got %s", got)
	}

	p.stop()
	if got := p.resolve("tcp", "127.0.0.1"); got != "no answer" {
		t.Errorf("An agent that has ended must not answer, got %s", got)
	}
	p.away.Store(true)
	p.start()
	eventually(t, "An agent that starts while the API server is unavailable must use its last zone.", "100.100.0.2", func() string { return p.resolve("udp", "127.0.0.1") })
}

func TestDNSKernel(t *testing.T) {
	t.Parallel()
	p := newPod(t, machine(), secret(), zoneConfigMap(t, "100.100.0.1"))
	p.dns, p.dnsPort, p.kernel = "set-dns", freeDNSPort(t), true
	// Another loopback address stands for the machine's address in the tailnet.
	p.local.SetAddresses(netip.MustParseAddr("127.0.0.53"))
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "A name must resolve at the machine's address in the tailnet.", "100.100.0.1", func() string { return p.resolve("udp", "127.0.0.53") })
	if got := p.resolve("tcp", "127.0.0.1"); got != "no answer" {
		t.Errorf("The agent must not answer on other addresses, got %s", got)
	}
	p.local.SetAddresses(netip.MustParseAddr("127.0.0.54"))
	eventually(t, "The agent must answer on a new address.", "100.100.0.1", func() string { return p.resolve("udp", "127.0.0.54") })
	eventually(t, "The agent must not answer on the old address.", "no answer", func() string { return p.resolve("tcp", "127.0.0.53") })
}
