// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

var addrDB = netip.MustParseAddr("100.64.0.9")

// tailnet has one device, db, and a route that is not used.
func tailnet(host string) localapi.Host {
	switch host {
	case "db":
		return localapi.Host{Addr: addrDB, Devices: []localapi.Device{{Name: "db.example.ts.net", Tags: []string{"tag:a", "tag:b"}}}}
	case "off":
		return localapi.Host{Addr: addrDB, Devices: []localapi.Device{{Name: "off.example.ts.net", Offline: true}}}
	case "ha":
		return localapi.Host{Addr: addrDB, Devices: []localapi.Device{{Name: "one.example.ts.net", Offline: true}, {Name: "two.example.ts.net"}}}
	case "10.0.0.1":
		return localapi.Host{RouteUnused: true}
	}
	return localapi.Host{}
}

// addrBoth are the addresses of the device both.
var addrBoth = []netip.Addr{netip.MustParseAddr("100.64.0.7"), netip.MustParseAddr("fd7a:115c:a1e0::7")}

// tailnetFamily finds hosts of tailnet by family. The device both has both, db and the others only
// IPv4, and six only IPv6.
func tailnetFamily(host string, ipv6 bool) localapi.Host {
	both := localapi.Host{Addr: addrBoth[0], Devices: []localapi.Device{{Name: "both.example.ts.net", Tags: []string{"tag:a"}}}}
	switch {
	case host == "both" && ipv6, host == "six" && ipv6:
		both.Addr = addrBoth[1]
		return both
	case host == "both":
		return both
	case ipv6, host == "six":
		return localapi.Host{}
	}
	return tailnet(host)
}

// TestEgressFamilies checks which addresses of a target the kernel forwards to.
func TestEgressFamilies(t *testing.T) {
	v4, v6 := netip.AddrPortFrom(addrBoth[0], 5432), netip.AddrPortFrom(addrBoth[1], 5432)
	db := netip.AddrPortFrom(addrDB, 5432)
	host := func(name string, fn ...func(*egress.Target)) egress.Target {
		return egressTarget(append(fn, func(t *egress.Target) { t.Host = name })...)
	}
	single := func(t *egress.Target) { t.SingleStack = true }
	find := func(name string) localapi.Host {
		if h := tailnetFamily(name, false); h.Addr.IsValid() || h.RouteUnused {
			return h
		}
		return tailnetFamily(name, true)
	}
	cases := map[string]struct {
		reason    string
		target    egress.Target
		families  address.Families
		ipv6First bool
		want      []netip.AddrPort
		ready     bool
		message   string
	}{
		"Both":        {reason: "A pod with both families forwards in both.", target: host("both"), families: address.Families{IPv4: true, IPv6: true}, want: []netip.AddrPort{v4, v6}, ready: true},
		"IPv6First":   {reason: "The pod's first family comes first.", target: host("both"), families: address.Families{IPv4: true, IPv6: true}, ipv6First: true, want: []netip.AddrPort{v6, v4}, ready: true},
		"IPv4":        {reason: "A pod with IPv4 forwards to the target's IPv4 address.", target: host("both"), families: address.Families{IPv4: true}, want: []netip.AddrPort{v4}, ready: true},
		"IPv6":        {reason: "A pod with IPv6 forwards to the target's IPv6 address.", target: host("both"), families: address.Families{IPv6: true}, ipv6First: true, want: []netip.AddrPort{v6}, ready: true},
		"Lacking":     {reason: "A target without an address of the pod's family is not ready.", target: host("six"), families: address.Families{IPv4: true}, message: "six has no address that this pod can forward to: the kernel translates within one address family, and this pod forwards IPv4; use networking Userspace, or pods with the family of the target"},
		"LackingIPv4": {reason: "A target with IPv4 alone is not ready in a pod with IPv6.", target: host("db"), families: address.Families{IPv6: true}, ipv6First: true, message: "db has no address that this pod can forward to: the kernel translates within one address family, and this pod forwards IPv6; use networking Userspace, or pods with the family of the target"},
		"Alternative": {reason: "Another address of the target is used.", target: host("db", func(t *egress.Target) { t.Alternatives = []string{"six"} }), families: address.Families{IPv6: true}, ipv6First: true, want: []netip.AddrPort{v6}, ready: true},
		"Half":        {reason: "A Service with two families needs a target with both.", target: host("db"), families: address.Families{IPv4: true, IPv6: true}, want: []netip.AddrPort{db}, ready: true, message: "Clients that connect to the Service by IPv6 do not reach db:5432, which has no such address that this pod can forward to"},
		"Single":      {reason: "A Service with one family needs one.", target: host("db", single), families: address.Families{IPv4: true, IPv6: true}, want: []netip.AddrPort{db}, ready: true},
		"OtherFirst":  {reason: "A Service with one family has that of the pod's first address.", target: host("db", single), families: address.Families{IPv4: true, IPv6: true}, ipv6First: true, message: "db has no address that this pod can forward to: the kernel translates within one address family, and this pod forwards IPv4 and IPv6; use networking Userspace, or pods with the family of the target"},
		"Tags":        {reason: "A device without the tags gets nothing, by no family.", target: host("both", func(t *egress.Target) { t.Tags = []string{"tag:z"} }), families: address.Families{IPv4: true, IPv6: true}, message: "Device both.example.ts.net has both but does not carry tag:z, which the target asks for"},
		"NoHost":      {reason: "A target that no device has is refused.", target: host("none"), families: address.Families{IPv4: true}, message: "No device of the tailnet that this proxy may reach has none; check the host, and that the policy file grants the proxy's tags access to it"},
		"Unused":      {reason: "A target behind a router is refused unless routes are used.", target: host("10.0.0.1"), families: address.Families{IPv4: true}, message: "Only a subnet router has 10.0.0.1, and this proxy does not accept routes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Egress(EgressInput{
				Targets: []egress.Target{tc.target}, Find: find, FindFamily: tailnetFamily, Resolves: named, Running: true,
				Kernel: true, Families: tc.families, IPv6First: tc.ipv6First,
				Applied: map[EgressKey][]netip.AddrPort{{Port: 10000, Protocol: corev1.ProtocolTCP}: tc.want},
			})[0]
			if diff := cmp.Diff(tc.want, p.Addrs, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
				t.Errorf("\n%s\nEgress(...): -want addresses, +got addresses:\n%s", tc.reason, diff)
			}
			if p.Ready != tc.ready || p.Message != tc.message {
				t.Errorf("\n%s\nEgress(...): ready %t, %q, want %t, %q", tc.reason, p.Ready, p.Message, tc.ready, tc.message)
			}
		})
	}
}

// named reports whether addr belongs to name, which holds only for db.
func named(name string, addr netip.Addr) bool { return name == "db.example.ts.net" && addr == addrDB }

func egressTarget(fn ...func(*egress.Target)) egress.Target {
	t := egress.Target{Key: "endpoint/db/5432", Host: "db", Port: 5432, Protocol: corev1.ProtocolTCP, ProxyPort: 10000}
	for _, f := range fn {
		f(&t)
	}
	return t
}

func TestEgress(t *testing.T) {
	check := func(t *egress.Target) {
		t.HealthCheck = &egress.HealthCheck{
			Path:     "/healthz",
			Interval: metav1.Duration{Duration: time.Second}, Timeout: metav1.Duration{Duration: time.Second},
			HealthyThreshold: 1, UnhealthyThreshold: 2,
		}
	}
	web := func(t *egress.Target) { t.Host, t.Service = "100.99.0.1", "svc:web" }
	seen := func(service string) map[string][]netip.Addr {
		addrs := map[string]string{"svc:web": "100.99.0.1", "svc:other": "100.99.0.2"}
		return map[string][]netip.Addr{service: {netip.MustParseAddr(addrs[service])}}
	}
	udp := func(t *egress.Target) { t.Protocol = corev1.ProtocolUDP }
	probed := probe.Target{Host: "100.64.0.9", Port: 5432, Path: "/healthz", Interval: time.Second, Timeout: time.Second, HealthyThreshold: 1, UnhealthyThreshold: 2}
	addr := netip.AddrPortFrom(addrDB, 5432)
	tcpKey := EgressKey{Port: 10000, Protocol: corev1.ProtocolTCP}

	cases := map[string]struct {
		reason string
		target egress.Target
		input  EgressInput
		addr   netip.AddrPort
		listen bool
		status v1alpha1.EgressPort
	}{
		"Ready": {
			reason: "A port that leads to a device is ready.",
			target: egressTarget(), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"Tags": {
			reason: "A device with the tags is a valid host.",
			target: egressTarget(func(t *egress.Target) { t.Tags = []string{"tag:b", "tag:a"} }), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"TagsMissing": {
			reason: "A device without one of the tags is refused.",
			target: egressTarget(func(t *egress.Target) { t.Tags = []string{"tag:z", "tag:a", "tag:y"} }), input: EgressInput{Running: true},
			listen: true,
			status: v1alpha1.EgressPort{Message: "Device db.example.ts.net has db but does not carry tag:y, tag:z, which the target asks for"},
		},
		"NoHost": {
			reason: "A target that no device has is refused.",
			target: egressTarget(func(t *egress.Target) { t.Host = "100.64.0.8" }), input: EgressInput{Running: true},
			listen: true,
			status: v1alpha1.EgressPort{Message: "No device of the tailnet that this proxy may reach has 100.64.0.8; check the host, and that the policy file grants the proxy's tags access to it"},
		},
		"ServiceNotSeen": {
			reason: "If control reports the services that the node may see, and the target's is not among them, the message has the missing grant.",
			target: egressTarget(web), input: EgressInput{Running: true, Visible: seen("svc:other"), Suffix: "example.ts.net", Tags: []string{"tag:k8s", "tag:a"}},
			listen: true,
			status: v1alpha1.EgressPort{Message: `The policy file does not let this proxy see svc:web; add a grant with src ["tag:a", "tag:k8s"], dst ["svc:web"] and ip ["tcp:5432"]`},
		},
		"ServiceUnknown": {
			reason: "If control does not report services, the policy is one possible reason.",
			target: egressTarget(web), input: EgressInput{Running: true, Suffix: "example.ts.net", Tags: []string{"tag:k8s"}},
			listen: true,
			status: v1alpha1.EgressPort{Message: "No device of the tailnet that this proxy may reach has 100.99.0.1; check the host, and that the policy file grants the proxy's tags access to it"},
		},
		"ServiceWithoutHost": {
			reason: "A service that the node may see, and that no peer has, has no host.",
			target: egressTarget(web), input: EgressInput{Running: true, Visible: seen("svc:web"), Suffix: "example.ts.net"},
			listen: true,
			status: v1alpha1.EgressPort{Message: "No host has the addresses of svc:web, which this proxy may see; check that a host of it is online and approved"},
		},
		"ServiceWithoutHostByAddress": {
			reason: "An address says which service it is.",
			target: egressTarget(func(t *egress.Target) { t.Host = "100.99.0.1" }), input: EgressInput{Running: true, Visible: seen("svc:web"), Suffix: "example.ts.net"},
			listen: true,
			status: v1alpha1.EgressPort{Message: "No host has the addresses of svc:web, which this proxy may see; check that a host of it is online and approved"},
		},
		"NameNotSeen": {
			reason: "A name can be that of a device or of a service.",
			target: egressTarget(func(t *egress.Target) { t.Host = "web.example.ts.net" }), input: EgressInput{Running: true, Visible: seen("svc:other"), Suffix: "example.ts.net", Tags: []string{"tag:k8s"}},
			listen: true,
			status: v1alpha1.EgressPort{Message: `No device that this proxy may reach has web.example.ts.net, and the policy file does not let the proxy see svc:web; check the name, or add a grant with src ["tag:k8s"], dst ["svc:web"] and ip ["tcp:5432"]`},
		},
		"NameOfAnotherDomain": {
			reason: "A name of another domain is no service.",
			target: egressTarget(func(t *egress.Target) { t.Host = "web.example.com" }), input: EgressInput{Running: true, Visible: seen("svc:other"), Suffix: "example.ts.net", Tags: []string{"tag:k8s"}},
			listen: true,
			status: v1alpha1.EgressPort{Message: "No device of the tailnet that this proxy may reach has web.example.com; check the host, and that the policy file grants the proxy's tags access to it"},
		},
		"RouteUnused": {
			reason: "A target behind a router is refused unless routes are used.",
			target: egressTarget(func(t *egress.Target) { t.Host = "10.0.0.1" }), input: EgressInput{Running: true},
			listen: true,
			status: v1alpha1.EgressPort{Message: "Only a subnet router has 10.0.0.1, and this proxy does not accept routes"},
		},
		"Offline": {
			reason: "A target on an offline device is not ready, but connections to it are still dialled.",
			target: egressTarget(func(t *egress.Target) { t.Host = "off" }), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: "Device off.example.ts.net, which has off, is offline"},
		},
		"OneOffline": {
			reason: "One online device of two is enough.",
			target: egressTarget(func(t *egress.Target) { t.Host = "ha" }), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"OfflineAnswers": {
			reason: "A target that answers probes is ready, even if the control server reports its device as offline.",
			target: egressTarget(check, func(t *egress.Target) { t.Host = "off" }), input: EgressInput{Running: true, Health: map[probe.Target]probe.Status{probed: {Health: probe.Healthy}}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"NotInTailnet": {
			reason: "While tailscaled is unavailable, the last known host is kept.",
			target: egressTarget(), addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: messageNotInTailnet},
		},
		"Outside": {
			reason: "A target that tailscaled would dial outside of the tailnet must be reported.",
			target: egressTarget(), input: EgressInput{Running: true, Outside: map[EgressKey]bool{tcpKey: true}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: "tailscaled would have dialled db:5432 outside of the tailnet, which was refused"},
		},
		"Unanswered": {
			reason: "A target that does not answer must be reported.",
			target: egressTarget(), input: EgressInput{Running: true, Unanswered: map[EgressKey]bool{tcpKey: true}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: "db:5432 does not answer, so its connections are refused; check that it runs, and that the policy file grants the proxy's tags access to its port"},
		},
		"Closed": {
			reason: "A port that the pod cannot listen on must be reported.",
			target: egressTarget(), input: EgressInput{Running: true, Closed: map[EgressKey]string{tcpKey: "The pod cannot"}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: "The pod cannot"},
		},
		"UDPUserspace": {
			reason: "UDP needs Kernel networking.",
			target: egressTarget(udp), input: EgressInput{Running: true},
			status: v1alpha1.EgressPort{Protocol: corev1.ProtocolUDP, Message: messageEgressUDP},
		},
		"UDPKernel": {
			reason: "The kernel forwards UDP, which has no health check.",
			target: egressTarget(udp, check),
			input: EgressInput{Running: true, Kernel: true, Families: address.Families{IPv4: true}, Applied: map[EgressKey][]netip.AddrPort{
				{Port: 10000, Protocol: corev1.ProtocolUDP}: {addr},
			}},
			addr:   addr,
			status: v1alpha1.EgressPort{Protocol: corev1.ProtocolUDP, Ready: true},
		},
		"KernelNotApplied": {
			reason: "The port is ready once containerboot has set up forwarding to the same address.",
			target: egressTarget(),
			input: EgressInput{Running: true, Kernel: true, Families: address.Families{IPv4: true}, Applied: map[EgressKey][]netip.AddrPort{
				tcpKey: {netip.MustParseAddrPort("100.64.0.8:5432")},
			}},
			addr:   addr,
			status: v1alpha1.EgressPort{Message: messageEgressApplying},
		},
		"OutOfRange": {
			reason: "A port that the agent uses must not be assigned.",
			target: egressTarget(func(t *egress.Target) { t.ProxyPort = 9093 }), input: EgressInput{Running: true},
			status: v1alpha1.EgressPort{Port: 9093, Message: messageEgressRange},
		},
		"Healthy": {
			reason: "A target that answers is ready.",
			target: egressTarget(check), input: EgressInput{Running: true, Health: map[probe.Target]probe.Status{probed: {Health: probe.Healthy}}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"Unhealthy": {
			reason: "A target that does not answer is not ready, but still gets connections.",
			target: egressTarget(check), input: EgressInput{Running: true, Health: map[probe.Target]probe.Status{probed: {Health: probe.Unhealthy, Reason: "timed out"}}},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: "db:5432 does not answer: timed out"},
		},
		"Name": {
			reason: "An address that has the expected name causes no message.",
			target: egressTarget(func(t *egress.Target) { t.Name = "db.example.ts.net" }), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true},
		},
		"OtherName": {
			reason: "An address with another name still gets connections, and a message reports it.",
			target: egressTarget(func(t *egress.Target) { t.Name = "old.example.ts.net" }), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Ready: true, Message: "db is led to, but old.example.ts.net is not its name in the tailnet; correct one of the two"},
		},
		"OtherNameTags": {
			reason: "The reason for a refusal takes precedence.",
			target: egressTarget(func(t *egress.Target) { t.Name, t.Tags = "old.example.ts.net", []string{"tag:z"} }), input: EgressInput{Running: true},
			listen: true,
			status: v1alpha1.EgressPort{Message: "Device db.example.ts.net has db but does not carry tag:z, which the target asks for"},
		},
		"Probing": {
			reason: "A target without a probe result is not ready.",
			target: egressTarget(check), input: EgressInput{Running: true},
			addr: addr, listen: true,
			status: v1alpha1.EgressPort{Message: messageEgressProbing},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.input.Targets = []egress.Target{tc.target}
			tc.input.Find, tc.input.FindFamily, tc.input.Resolves = tailnet, tailnetFamily, named
			ports := Egress(tc.input)
			if len(ports) != 1 {
				t.Fatalf("\n%s\nEgress(...): %d ports, want 1", tc.reason, len(ports))
			}
			tc.status.Target = tc.target.Key
			if tc.status.Port == 0 {
				tc.status.Port = 10000
			}
			if tc.status.Protocol == "" {
				tc.status.Protocol = corev1.ProtocolTCP
			}
			if diff := cmp.Diff([]v1alpha1.EgressPort{tc.status}, EgressStatus(ports)); diff != "" {
				t.Errorf("\n%s\nEgressStatus(...): -want, +got:\n%s", tc.reason, diff)
			}
			if ports[0].Addr != tc.addr || ports[0].Listen != tc.listen {
				t.Errorf("\n%s\naddress %s, listens %t, want %s, %t", tc.reason, ports[0].Addr, ports[0].Listen, tc.addr, tc.listen)
			}
		})
	}
}

func TestEgressOrder(t *testing.T) {
	first := egressTarget(func(t *egress.Target) { t.Key = "a" })
	second := egressTarget(func(t *egress.Target) { t.Key = "b" })
	low := egressTarget(func(t *egress.Target) { t.Key, t.ProxyPort = "z", 10001 })
	udp := egressTarget(func(t *egress.Target) { t.Key, t.Protocol = "u", corev1.ProtocolUDP })
	want := []string{"a", "u", "z"}
	for _, input := range []EgressInput{
		{Targets: []egress.Target{second, low, udp, first}},
		{Targets: []egress.Target{first, udp, second, low}},
		{Targets: []egress.Target{udp, first}, Leaving: []egress.Target{low, second}},
	} {
		input.Find = tailnet
		var got []string
		for _, p := range EgressStatus(Egress(input)) {
			got = append(got, p.Target)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("A port must have the same target for any order of the input: -want, +got:\n%s", diff)
		}
	}
}

func TestEgressServices(t *testing.T) {
	ports := Egress(EgressInput{
		Targets: []egress.Target{
			egressTarget(),
			egressTarget(func(t *egress.Target) { t.Key, t.Protocol, t.Port = "dns", corev1.ProtocolUDP, 53 }),
			egressTarget(func(t *egress.Target) { t.Key, t.Host, t.ProxyPort = "gone", "gone", 10001 }),
		},
		Find: tailnet, FindFamily: tailnetFamily, Running: true, Kernel: true, Families: address.Families{IPv4: true},
	})
	want := `{"tcp-10000":{"healthCheckEndpoint":"","tailnetTarget":{"ip":"100.64.0.9","fqdn":""},"ports":[{"protocol":"tcp","matchPort":10000,"targetPort":5432}]},` +
		`"udp-10000":{"healthCheckEndpoint":"","tailnetTarget":{"ip":"100.64.0.9","fqdn":""},"ports":[{"protocol":"udp","matchPort":10000,"targetPort":53}]}}`
	for range 20 {
		got, err := EgressServices(ports)
		if err != nil {
			t.Fatalf("EgressServices(...): %v", err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatalf("Only ports with an address must be forwarded, in the same bytes each time: -want, +got:\n%s", diff)
		}
	}
}

func TestEgressApplied(t *testing.T) {
	status := `{"podIPv4":"10.0.0.7","services":{"tcp-10000":{"ports":[{"protocol":"tcp","matchPort":10000,"targetPort":5432}],"tailnetTargetIPs":["100.64.0.9"]},` +
		`"udp-10001":{"ports":[{"protocol":"udp","matchPort":10001,"targetPort":53}],"tailnetTargetIPs":[]}}}`
	cases := map[string]struct {
		reason string
		status string
		podIP  string
		want   map[EgressKey][]netip.AddrPort
		err    error
	}{
		"ThisPod": {
			reason: "A status that was written for this pod is used.",
			status: status, podIP: "10.0.0.7",
			want: map[EgressKey][]netip.AddrPort{{Port: 10000, Protocol: corev1.ProtocolTCP}: {netip.AddrPortFrom(addrDB, 5432)}},
		},
		"AnotherPod": {reason: "A status that was written for an earlier pod is ignored.", status: status, podIP: "10.0.0.8"},
		"None":       {reason: "Without a status nothing is set up yet.", podIP: "10.0.0.7"},
		"Broken":     {reason: "A status that cannot be read is an error.", status: "{", podIP: "10.0.0.7", err: cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := EgressApplied([]byte(tc.status), tc.podIP)
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nEgressApplied(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nEgressApplied(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
