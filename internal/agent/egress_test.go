// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi/localapitest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func configMap(t *testing.T, targets ...egress.Target) *corev1.ConfigMap {
	t.Helper()
	s, err := egress.Config{Targets: targets}.Encode()
	if err != nil {
		t.Fatalf("Encode(): %v", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-egress"},
		Data:       map[string]string{egress.ConfigMapKey: s},
	}
}

// nextPort is the next port that freePort tries.
var nextPort atomic.Int32

// freePort returns a port that is valid for targets, has no listener, and is not used by
// another test.
func freePort(t *testing.T) int32 {
	t.Helper()
	for port := egress.FirstPort + nextPort.Add(7); port <= egress.LastPort; port = egress.FirstPort + nextPort.Add(7) {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("Close(): %v", err)
		}
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// newEgressPod returns an egress pod in whose tailnet the device db echoes.
func newEgressPod(t *testing.T, objs ...client.Object) *pod {
	t.Helper()
	p := newPod(t, append(objs, machine(), secret())...)
	p.egress = "set-egress"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen(...): %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	p.local.SetDial(func(addr string) (net.Conn, error) {
		if addr != "100.64.0.9:5432" {
			return nil, nil
		}
		return net.Dial("tcp", l.Addr().String())
	})
	p.local.Set(ipn.Running)
	p.local.SetPeers(localapitest.Peer(1, "db", []string{"tag:db"}, []string{"100.64.0.9"}))
	return p
}

// ports returns the egress ports in the Machine's status.
func (p *pod) ports() []v1alpha1.EgressPort {
	p.t.Helper()
	m := &v1alpha1.Machine{}
	if err := p.kube.Get(p.t.Context(), client.ObjectKey{Namespace: "default", Name: "set-0"}, m); err != nil {
		p.t.Fatalf("Get(...): %v", err)
	}
	if m.Status.Agent == nil {
		return nil
	}
	return m.Status.Agent.Egress
}

// ping sends bytes through a port of the pod and returns an error unless they come back.
func ping(port int32) (net.Conn, error) {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return c, pingAgain(c)
}

func pingAgain(c net.Conn) error {
	if _, err := io.WriteString(c, "ping"); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

// cut resets a connection. If the client only closed its sending side, the target could answer
// for a while longer.
func cut(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatalf("SetLinger(0): %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatalf("Close(): %v", err)
	}
}

func target(port int32, host string) egress.Target {
	return egress.Target{Key: "endpoint/db/5432", Host: host, Port: 5432, Protocol: corev1.ProtocolTCP, ProxyPort: port, Tags: []string{"tag:db"}}
}

func TestEgressLife(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := newEgressPod(t)
	p.start()
	eventually(t, "A pod without a ConfigMap must start: there is nothing to carry.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathStartup)
		return code
	})

	cm := configMap(t, target(port, "db.example.ts.net"))
	if err := p.kube.Create(t.Context(), cm); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	ready := []v1alpha1.EgressPort{{Port: port, Protocol: corev1.ProtocolTCP, Target: "endpoint/db/5432", Ready: true}}
	eventually(t, "A port that leads to a device must be reported.", ready, p.ports)
	c, err := ping(port)
	if err != nil {
		t.Fatalf("The port must carry connections: %v", err)
	}
	if code, body := p.get(sidecar.PathReadiness); code != http.StatusOK {
		t.Errorf("The pod must be ready, got %d: %s", code, body)
	}

	if _, body := p.get(sidecar.PathMetrics); !strings.Contains(body, `tailscale_gateway_egress_connections_total{target="endpoint/db/5432"} 1`) {
		t.Error("Connections must be counted by target")
	}

	p.local.ChangePeers(nil, 1)
	lost := []v1alpha1.EgressPort{{
		Port: port, Protocol: corev1.ProtocolTCP, Target: "endpoint/db/5432",
		Message: "No device of the tailnet that this proxy may reach has db.example.ts.net; check the host, and that the policy file grants the proxy's tags access to it",
	}}
	eventually(t, "The report must say that the device is gone.", lost, p.ports)
	dials := len(p.local.Dialled())
	if _, err := ping(port); err == nil {
		t.Error("A target without a host must be refused")
	}
	if n := len(p.local.Dialled()); n != dials {
		t.Errorf("A target without a host must never be dialled, tailscaled got %d requests", n-dials)
	}
	p.local.SetPeers(localapitest.Peer(2, "db", []string{"tag:db"}, []string{"100.64.0.9"}))
	eventually(t, "A device that is back must be used.", ready, p.ports)

	cm.Data[egress.ConfigMapKey] = "{"
	if err := p.kube.Update(t.Context(), cm); err != nil {
		t.Fatalf("Update(...): %v", err)
	}
	eventually(t, "A ConfigMap that cannot be read must be logged.", true, func() bool {
		return strings.Contains(p.logged.String(), "Cannot use ConfigMap")
	})
	if err := p.kube.Delete(t.Context(), cm); err != nil {
		t.Fatalf("Delete(...): %v", err)
	}
	if err := pingAgain(c); err != nil {
		t.Errorf("A missing or invalid ConfigMap must change nothing: %v", err)
	}
	if diff := cmp.Diff(ready, p.ports()); diff != "" {
		t.Errorf("A missing or invalid ConfigMap must change nothing: -want, +got:\n%s", diff)
	}

	cm = configMap(t)
	if err := p.kube.Create(t.Context(), cm); err != nil {
		t.Fatalf("Create(...): %v", err)
	}
	leaving := []v1alpha1.EgressPort{{
		Port: port, Protocol: corev1.ProtocolTCP, Target: "endpoint/db/5432",
		Message: "No longer wanted; open until its connections have ended",
	}}
	eventually(t, "A released port must be reported while it is open.", leaving, p.ports)
	if err := pingAgain(c); err != nil {
		t.Errorf("Its connections must stay open: %v", err)
	}
	cut(t, c)
	eventually(t, "It must not be reported once it is closed.", nil, p.ports)
	if _, err := ping(port); err == nil {
		t.Error("A released port must be closed in the end")
	}
}

// TestEgressGone checks that a connection ends whose device has left the tailnet, though neither
// side sends anything.
func TestEgressGone(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := newEgressPod(t, configMap(t, target(port, "100.64.0.9")))
	p.absence = 50 * time.Millisecond
	p.start()
	var c net.Conn
	eventually(t, "The port must carry connections.", true, func() bool {
		var err error
		c, err = ping(port)
		return err == nil
	})
	p.local.ChangePeers(nil, 1)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("A connection to a device that has left the tailnet must be reset, got %v", err)
	}
}

func TestEgressHealth(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	db := target(port, "100.64.0.9")
	db.HealthCheck = &egress.HealthCheck{
		Interval:         metav1.Duration{Duration: 10 * time.Millisecond},
		Timeout:          metav1.Duration{Duration: time.Second},
		HealthyThreshold: 1, UnhealthyThreshold: 2,
	}
	p := newEgressPod(t, configMap(t, db))
	p.start()
	port0 := v1alpha1.EgressPort{Port: port, Protocol: corev1.ProtocolTCP, Target: db.Key}
	ready, unhealthy := port0, port0
	ready.Ready, unhealthy.Message = true, "100.64.0.9:5432 does not answer: cannot connect"
	eventually(t, "A target that answers through the tailnet must be ready.", []v1alpha1.EgressPort{ready}, p.ports)
	p.local.SetDial(func(string) (net.Conn, error) { return nil, errors.New("connection was refused") })
	eventually(t, "It must be reported that a target does not answer.", []v1alpha1.EgressPort{unhealthy}, p.ports)
}

func TestEgressWarmup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		warm   time.Duration
		mute   bool
		peer   *tailcfg.Node
		want   string
	}{
		"Answers": {
			reason: "A pod must be ready when the devices of its targets have answered.",
			warm:   time.Hour,
		},
		"Silent": {
			reason: "A pod must not be ready before the devices of its targets have answered: connections would hang.",
			warm:   time.Hour,
			mute:   true,
			want:   "Waiting for a connection to device db.example.ts.net",
		},
		"GivesUp": {
			reason: "A device that never answers must not keep the pod from being ready.",
			warm:   100 * time.Millisecond,
			mute:   true,
		},
		"Offline": {
			reason: "A pod must not wait for an offline device.",
			warm:   time.Hour,
			mute:   true,
			peer:   offline(localapitest.Peer(1, "db", []string{"tag:db"}, []string{"100.64.0.9"})),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newEgressPod(t, configMap(t, target(freePort(t), "100.64.0.9")))
			if tc.peer != nil {
				p.local.SetPeers(tc.peer)
			}
			p.warm = tc.warm
			p.local.SetMute(tc.mute)
			p.start()
			eventually(t, tc.reason, tc.want, func() string {
				_, body := p.get(sidecar.PathReadiness)
				return strings.TrimSpace(body)
			})
			eventually(t, "An online device must be pinged through WireGuard, and no other.", tc.peer == nil, func() bool {
				return slices.Contains(p.local.Pinged(), "TSMP 100.64.0.9")
			})
			p.local.SetMute(false)
			eventually(t, "The pod must be ready in the end.", http.StatusOK, func() int {
				code, _ := p.get(sidecar.PathReadiness)
				return code
			})
		})
	}
}

// offline returns a node that control reports as offline.
func offline(n *tailcfg.Node) *tailcfg.Node {
	online, seen := false, time.Now()
	n.Online, n.LastSeen = &online, &seen
	return n
}

func TestEgressRestart(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := newEgressPod(t, configMap(t, target(port, "100.64.0.9")))
	p.start()
	eventually(t, "The port must carry connections.", true, func() bool {
		_, err := ping(port)
		return err == nil
	})
	eventually(t, "It must be ready: an agent that has not read its Secret keeps nothing for a restart.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	})
	p.stop()
	if _, err := ping(port); err == nil {
		t.Error("An agent that has ended must not listen")
	}

	p.away.Store(true)
	p.start()
	eventually(t, "A restarted agent must carry connections while the API server is unavailable.", true, func() bool {
		_, err := ping(port)
		return err == nil
	})
	eventually(t, "It must be ready once the target's device has answered a ping.", http.StatusOK, func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	})
}

func TestEgressPreStop(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := newEgressPod(t, configMap(t, target(port, "100.64.0.9")))
	p.start()
	var c net.Conn
	eventually(t, "The port must carry connections.", true, func() bool {
		var err error
		c, err = ping(port)
		return err == nil
	})
	done := make(chan time.Time, 1)
	start := time.Now()
	go func() {
		p.preStop()
		done <- time.Now()
	}()
	eventually(t, "A stopping pod must not be ready.", http.StatusServiceUnavailable, func() int {
		code, _ := p.get(sidecar.PathReadiness)
		return code
	})
	late, err := ping(port)
	if err != nil {
		t.Errorf("New connections must be carried until all clients have been notified: %v", err)
	}
	eventually(t, "Then the port must be closed.", false, func() bool {
		d, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			cut(t, d)
		}
		return err == nil
	})
	if took := time.Since(start); took < spreadTime {
		t.Errorf("The port was closed after %s, want %s at least", took, spreadTime)
	}
	if err := pingAgain(c); err != nil {
		t.Errorf("Open connections must stay open: %v", err)
	}
	select {
	case <-done:
		t.Error("The pod must wait for open connections")
	default:
	}
	for _, c := range []net.Conn{c, late} {
		cut(t, c)
	}
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("The pod may end once no connection is open")
	}
}

// TestEgressDrainEnds checks that a connection that outlasts the drain is reset by the agent. Otherwise requests would
// wait for a tailscaled that stops.
func TestEgressDrainEnds(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := newEgressPod(t, configMap(t, target(port, "100.64.0.9")))
	p.egressDrain = spreadTime
	p.start()
	var c net.Conn
	eventually(t, "The port must carry connections.", true, func() bool {
		var err error
		c, err = ping(port)
		return err == nil
	})
	p.preStop()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("A connection that is open at the end of a drain must be reset, got %v", err)
	}
}
