// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"
	"tailscale.com/kube/ingressservices"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
)

// Contents of containerboot's files.
const (
	egressNone  = `{}`
	egressDB    = `{"tcp-10000":{"healthCheckEndpoint":"","tailnetTarget":{"ip":"100.64.0.9","fqdn":""},"ports":[{"protocol":"tcp","matchPort":10000,"targetPort":5432}]}}`
	ingressNone = `{}`
	ingressWeb  = `{"svc:web":{"IPv4Mapping":{"TailscaleServiceIP":"100.100.0.1","ClusterIP":"10.96.0.1"}}}`
	serveTun    = `{"Services":{"svc:web":{"Tun":true}}}`
)

// proxies returns a function that reads one of containerboot's files. Empty means that the file
// does not exist.
func (p *pod) proxies(name string) func() string {
	return func() string {
		p.t.Helper()
		b, err := os.ReadFile(filepath.Join(p.dir, "proxies", name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			p.t.Fatalf("ReadFile(...): %v", err)
		}
		return string(b)
	}
}

// state writes containerboot's status into the state Secret.
func (p *pod) state(key, status string) {
	p.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-0"}}
	err := p.kube.Get(p.t.Context(), client.ObjectKeyFromObject(s), s)
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatalf("Get(...): %v", err)
	}
	s.Data = wholeState()
	s.Data[key] = []byte(status)
	if err == nil {
		err = p.kube.Update(p.t.Context(), s)
	} else {
		err = p.kube.Create(p.t.Context(), s)
	}
	if err != nil {
		p.t.Fatalf("cannot write state Secret: %v", err)
	}
}

func TestKernelEgress(t *testing.T) {
	t.Parallel()
	p := newEgressPod(t, configMap(t, target(10000, "db")))
	p.kernel, p.podAddresses = true, []netip.Addr{netip.MustParseAddr("10.0.0.7")}
	p.start()
	eventually(t, "The egress config must contain the port.", egressDB, p.proxies("egress-services"))
	port := v1alpha1.EgressPort{Port: 10000, Protocol: corev1.ProtocolTCP, Target: "endpoint/db/5432"}
	waiting, ready := port, port
	waiting.Message, ready.Ready = "Waiting for containerboot to set up forwarding", true
	eventually(t, "A port that is not set up yet must not be reported as ready.", []v1alpha1.EgressPort{waiting}, p.ports)

	applied := `{"podIPv4":"10.0.0.7","services":{"tcp-10000":{"ports":[{"protocol":"tcp","matchPort":10000,"targetPort":5432}],"tailnetTargetIPs":["100.64.0.9"]}}}`
	p.state("egress-services", applied)
	eventually(t, "A port that is set up must be reported as ready.", []v1alpha1.EgressPort{ready}, p.ports)

	p.stop()
	p.local.Stop()
	p.start()
	if got := p.proxies("egress-services")(); got != egressDB {
		t.Errorf("A restarted agent must change nothing while tailscaled is unavailable, got %s", got)
	}
	p.local.Start()
	p.local.Set(ipn.Running)
	eventually(t, "The port must be reported as ready again.", []v1alpha1.EgressPort{ready}, p.ports)

	p.away.Store(true)
	p.local.ChangePeers(nil, 1)
	eventually(t, "The agent must check whether the API server is available.", true, func() bool {
		return p.proxies("egress-services")() == egressDB && strings.Contains(p.logged.String(), "while the API server is away")
	})
	p.away.Store(false)
	eventually(t, "A target without a host must not be forwarded to.", egressNone, p.proxies("egress-services"))
}

func TestKernelIngress(t *testing.T) {
	t.Parallel()
	a := attachment()
	a.Spec.Ports = []v1alpha1.AttachmentPort{{Port: 80, Backend: &v1alpha1.AttachmentBackend{Host: "10.96.0.1", Port: 80}}}
	p := newPod(t, machine(), secret())
	p.kernel = true
	p.state("_current-profile", "profile-1")
	p.start()
	p.local.Set(ipn.Running)
	eventually(t, "The first start must write an empty config.", ingressNone, p.proxies("ingress-config.json"))

	if err := p.kube.Create(t.Context(), a); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	eventually(t, "The ingress config must contain the service.", ingressWeb, p.proxies("ingress-config.json"))
	eventually(t, "The serve config must mark the service as forwarded by the kernel.", serveTun, p.proxies("serve-config.json"))
	eventually(t, "The report must say why the service is not advertised.", v1alpha1.HostedService{
		Name: "svc:web", Routed: v1alpha1.RoutingUnknown, HealthyBackends: 1, TotalBackends: 1, Ports: []string{"tcp:80"}, Message: "Waiting for containerboot to set up forwarding",
	}, p.service)
	eventually(t, "A service that is not set up yet must not be advertised.", [2]string{configNone, serveTun}, p.files)

	p.state("ingress-config.json", `{"podIPv4":"10.0.0.7","configs":`+ingressWeb+`}`)
	eventually(t, "A service that is set up must be advertised.", [2]string{configWeb, serveTun}, p.files)

	p.stop()
	p.away.Store(true)
	p.start()
	if got := p.files(); got != [2]string{configWeb, serveTun} {
		t.Errorf("A restarted agent must change nothing while the API server is unavailable, got %v", got)
	}
	p.away.Store(false)
	eventually(t, "The service must be reported again.", true, func() bool { return p.service().Advertised })
	if got := p.proxies("ingress-config.json")(); got != ingressWeb {
		t.Errorf("A restarted agent must continue to forward, got %s", got)
	}

	if err := p.kube.Delete(t.Context(), a); err != nil {
		t.Fatalf("Delete(...): %v", err)
	}
	eventually(t, "A service that is no longer wanted must be withdrawn, and still be forwarded.", [2]string{configNone, serveTun}, p.files)
	eventually(t, "It must not be forwarded in the end.", ingressNone, p.proxies("ingress-config.json"))
}

// TestForgetUDP checks when UDP flows are deleted in the kernel: once containerboot has set up
// new targets, and not for each change of the state Secret.
func TestForgetUDP(t *testing.T) {
	egress := func(target string) []byte {
		return []byte(`{"podIPv4":"10.0.0.7","services":{"udp-10000":{"ports":[{"protocol":"udp","matchPort":10000,"targetPort":53}],"tailnetTargetIPs":["` + target + `"]},` +
			`"tcp-10001":{"ports":[{"protocol":"tcp","matchPort":10001,"targetPort":53}],"tailnetTargetIPs":["` + target + `"]}}}`)
	}
	ingress := []byte(`{"podIPv4":"10.0.0.7","configs":` + ingressWeb + `}`)
	var forgotten []network.Translations
	broken := false
	k := newKernel(&KernelOptions{ForgetUDP: func(t network.Translations) (uint, error) {
		if broken {
			return 0, errors.New("boom")
		}
		forgotten = append(forgotten, t)
		return 1, nil
	}}, nil, func() {})
	none := network.Translations{Ports: map[uint16][]netip.AddrPort{}, Addresses: map[netip.Addr]netip.Addr{}}
	translations := func(target string) network.Translations {
		return network.Translations{
			Ports:     map[uint16][]netip.AddrPort{10000: {netip.MustParseAddrPort(target + ":53")}},
			Addresses: map[netip.Addr]netip.Addr{},
		}
	}
	both := translations("100.64.0.8")
	both.Addresses[netip.MustParseAddr("100.100.0.1")] = netip.MustParseAddr("10.96.0.1")
	for _, step := range []struct {
		reason string
		data   map[string][]byte
		broken bool
		want   []network.Translations
	}{
		{reason: "Flows of an earlier run of the agent are deleted.", want: []network.Translations{none}},
		{reason: "Flows from before a port had a target are deleted.", data: map[string][]byte{"egress-services": egress("100.64.0.9")}, want: []network.Translations{translations("100.64.0.9")}},
		{reason: "Without a new target nothing is deleted.", data: map[string][]byte{"egress-services": egress("100.64.0.9"), "device_id": []byte("n1")}},
		{reason: "A failure is retried at the next change.", data: map[string][]byte{"egress-services": egress("100.64.0.8")}, broken: true},
		{reason: "Flows are deleted when a port has another target.", data: map[string][]byte{"egress-services": egress("100.64.0.8")}, want: []network.Translations{translations("100.64.0.8")}},
		{reason: "Flows are deleted when a service has an address.", data: map[string][]byte{"egress-services": egress("100.64.0.8"), "ingress-config.json": ingress}, want: []network.Translations{both}},
		{reason: "Flows to removed targets are deleted.", want: []network.Translations{none}},
	} {
		forgotten, broken = nil, step.broken
		if err := k.setState(&corev1.Secret{Data: step.data}, "10.0.0.7"); (err != nil) != step.broken {
			t.Errorf("%s: setState(...): %v", step.reason, err)
		}
		if diff := cmp.Diff(step.want, forgotten, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", step.reason, diff)
		}
	}
}

// TestKernelDrain checks that the drain of an egress pod waits for connections that the kernel
// forwards: tailscaled would cut them (tailscale/tailscale#16162).
func TestKernelDrain(t *testing.T) {
	cases := map[string]struct {
		reason string
		open   func(calls int) (bool, error)
		done   bool
	}{
		"Open":    {reason: "A drain must not end while a connection is open.", open: func(int) (bool, error) { return true, nil }},
		"Ends":    {reason: "A drain must end with the last connection.", open: func(calls int) (bool, error) { return calls < 3, nil }, done: true},
		"Unknown": {reason: "A drain must not end while it is not known whether a connection is open.", open: func(int) (bool, error) { return false, errors.New("boom") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			var forwarded network.Forwarded
			l, _ := newLoop(t, t.TempDir())
			l.kernel = newKernel(&KernelOptions{OpenTCP: func(f network.Forwarded) (bool, error) {
				calls, forwarded = calls+1, f
				return tc.open(calls)
			}}, l.serving.dir, func() {})
			l.kernel.applied = plan.Forwards{"svc:web": {IPv4Mapping: &ingressservices.Mapping{TailscaleServiceIP: netip.MustParseAddr("100.100.0.1"), ClusterIP: netip.MustParseAddr("10.96.0.1")}}}
			e := &egressRole{opts: EgressOptions{Spread: time.Second, Drain: time.Minute}, kernel: l.kernel, ports: []plan.EgressPort{{}}}
			l.roles = roles{l.kernel, e}
			l.tailnet.Running = true

			at := time.Unix(1000, 0)
			done := l.startDrain(at)
			busy := func() bool { return l.roles.busy() }
			at = at.Add(l.opts.Drain - time.Second)
			l.drains.current.step(at, l.tailnet, busy)
			if calls > 0 {
				t.Error("The kernel's table must not be read while clients move.")
			}
			for range 5 {
				at = at.Add(time.Second)
				l.drains.current.step(at, l.tailnet, busy)
			}
			if next := l.drains.deadlines(at); !tc.done && !slices.Contains(next, at.Add(openEvery)) {
				t.Errorf("\n%s\nThe agent must look again soon, at %v", tc.reason, next)
			}
			select {
			case <-done:
				if !tc.done {
					t.Errorf("\n%s", tc.reason)
				}
			default:
				if tc.done {
					t.Errorf("\n%s", tc.reason)
				}
			}
			want := network.Forwarded{First: 10000, Last: 31999, Addresses: map[netip.Addr]bool{netip.MustParseAddr("100.100.0.1"): true}}
			if diff := cmp.Diff(want, forwarded, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nOpenTCP(...): -want, +got:\n%s", tc.reason, diff)
			}
			l.drains.current.step(at.Add(time.Hour), l.tailnet, busy)
			if !l.drains.current.over() {
				t.Errorf("\n%s\nA drain must end when its time is over.", tc.reason)
			}
		})
	}
}

// TestLookupFamilies checks that a host does not lose a family because its lookup fails.
func TestLookupFamilies(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")
	missing := &net.DNSError{IsNotFound: true}
	type answer struct {
		addrs []netip.Addr
		err   error
	}
	cases := map[string]struct {
		reason   string
		previous []netip.Addr
		v4, v6   answer
		want     []netip.Addr
		err      error
	}{
		"Both":      {reason: "A host can have both.", v4: answer{addrs: []netip.Addr{v4}}, v6: answer{addrs: []netip.Addr{v6}}, want: []netip.Addr{v4, v6}},
		"One":       {reason: "A host can have one.", v4: answer{addrs: []netip.Addr{v4}}, v6: answer{err: missing}, want: []netip.Addr{v4}},
		"None":      {reason: "A host can have none.", v4: answer{err: missing}, v6: answer{err: missing}},
		"NewFails":  {reason: "A server that never answers for a family must not hide the other one.", previous: []netip.Addr{v4}, v4: answer{addrs: []netip.Addr{v4}}, v6: answer{err: errBoom}, want: []netip.Addr{v4}},
		"OldFails":  {reason: "A family that the host had must not be lost.", previous: []netip.Addr{v4, v6}, v4: answer{addrs: []netip.Addr{v4}}, v6: answer{err: errBoom}, err: errBoom},
		"BothFails": {reason: "A failure is not an empty answer.", v4: answer{err: errBoom}, v6: answer{err: errBoom}, err: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ready := make(chan struct{}, 10)
			k := &kernelRole{enabled: true}
			k.resolver = resolver.New(resolver.Options{Interval: time.Hour, Retry: time.Hour, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
				return slices.Clone(tc.previous), nil
			}}, func(string) { ready <- struct{}{} })
			k.resolver.Set(t.Context(), []string{"web.shop"})
			<-ready
			got, err := k.lookup(func(_ context.Context, network, host string) ([]netip.Addr, error) {
				if host != "web.shop." {
					t.Errorf("the pod's search list must not complete the name, looked up %s", host)
				}
				if network == "ip4" {
					return tc.v4.addrs, tc.v4.err
				}
				return tc.v6.addrs, tc.v6.err
			})(t.Context(), "ip", "web.shop")
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nlookup(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nlookup(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNetworkProblem checks that the agent reports a node on which Kernel networking fails.
func TestNetworkProblem(t *testing.T) {
	t.Parallel()
	p := newEgressPod(t, configMap(t, target(10000, "db")))
	p.kernel, p.networkReport = true, network.Report{Tun: "operation not permitted"}
	p.local.Set(ipn.NeedsLogin)
	p.start()
	problem := func() string {
		m := &v1alpha1.Machine{}
		if err := p.kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "set-0"}, m); err != nil {
			t.Fatalf("Get(...): %v", err)
		}
		if m.Status.Agent == nil || m.Status.Agent.Network == nil {
			return ""
		}
		return m.Status.Agent.Network.Reason
	}
	eventually(t, "A container without a TUN device must be reported.", "NoTunDevice", problem)
	p.local.Set(ipn.Running)
	eventually(t, "A tailscaled that runs has a TUN device.", "", problem)
}
