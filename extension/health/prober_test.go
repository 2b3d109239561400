// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// A fakeStore provides the targets of a test, and records placements.
type fakeStore struct {
	mu       sync.Mutex
	snapshot *ir.Snapshot
	placed   map[ir.TargetKey]ir.Placement
	stored   int
}

func (s *fakeStore) Snapshot() *ir.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

func (s *fakeStore) SetHealth(placements map[ir.TargetKey]ir.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored++
	for k, p := range placements {
		s.placed[k] = p
	}
}

func (s *fakeStore) placement(k ir.TargetKey) ir.Placement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.placed[k]
}

func (s *fakeStore) set(ts ...*ir.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = ir.NewSnapshot(ir.Contents{Targets: ts})
}

// A network of hosts that answer, answer with errors, or do not answer.
type network struct {
	mu     sync.Mutex
	result map[string]Result
	probes map[string]int
}

func (n *network) Check(_ context.Context, c Check) Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probes[c.Host]++
	return n.result[c.Host]
}

func (n *network) set(host string, r Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.result[host] = r
}

func (n *network) count(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.probes[host]
}

func results() (ok, failed, dead Result) {
	return Result{OK: true, Answered: true}, Result{Answered: true, Reason: "HTTP status 500"}, Result{Reason: "connection refused"}
}

func key(name string) ir.TargetKey {
	return ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: name, Port: 80, Protocol: ir.ProtocolHTTP}
}

// targetOf returns a target with endpoints at hosts; hosts that begin with an x are in another
// cluster.
func targetOf(name string, d ir.Delays, hosts ...string) *ir.Target {
	t := &ir.Target{Key: key(name), Delays: d, Shape: ir.Shape{
		HealthThreshold: 70,
		HealthCheck:     &ir.HealthCheck{Path: "/health", Interval: 10 * time.Second, Timeout: time.Second, Healthy: 2, Unhealthy: 3},
	}}
	for _, h := range hosts {
		c := ir.Candidate{Origin: &ir.Origin{Source: h[:1]}, Address: ir.Address{Host: h, Port: 80}, Weight: 1}
		if h[0] == 'x' {
			c.Remote, c.Cluster = true, "cluster-x"
		}
		t.Candidates = append(t.Candidates, c)
	}
	return t
}

// A lab is a running prober.
type lab struct {
	store *fakeStore
	net   *network
	p     *Prober
	stop  func()
}

func newLab(t *testing.T, ts ...*ir.Target) *lab {
	t.Helper()
	ok, _, _ := results()
	l := &lab{store: &fakeStore{placed: map[ir.TargetKey]ir.Placement{}}, net: &network{result: map[string]Result{}, probes: map[string]int{}}}
	for _, target := range ts {
		for _, c := range target.Candidates {
			l.net.result[c.Address.Host] = ok
		}
	}
	l.store.set(ts...)
	l.p = NewProber(l.store, Options{Checker: l.net, Random: func() float64 { return 0.5 }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.p.Run(ctx) }()
	l.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return l
}

// after waits in the bubble's fake time.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func unhealthy(hosts ...string) map[ir.Address]bool {
	out := map[ir.Address]bool{}
	for _, h := range hosts {
		out[ir.Address{Host: h, Port: 80}] = true
	}
	return out
}

func (l *lab) want(t *testing.T, reason string, want ir.Placement) {
	t.Helper()
	if got := l.store.placement(key("web")); !got.Equal(want) {
		t.Fatalf("%s\n-want, +got\n%s", reason, cmp.Diff(want, got))
	}
}

func TestTransitions(t *testing.T) {
	_, bad, dead := results()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("web", ir.Delays{}, "a", "b", "x"))
		defer l.stop()
		after(time.Minute)
		if l.store.stored != 0 {
			t.Errorf("%d placements are stored, want none: nothing happened", l.store.stored)
		}
		n := l.net.count("a")
		if n < 5 || n > 9 {
			t.Errorf("%d probes in a minute, want one each 10 seconds, and a few at the start", n)
		}
		l.net.set("a", bad)
		after(15 * time.Second)
		l.want(t, "three errors in a row make an endpoint unhealthy", ir.Placement{Unhealthy: unhealthy("a")})
		l.net.set("b", dead)
		after(30 * time.Second)
		l.want(t, "failures to connect do so too, while other hosts answer", ir.Placement{Unhealthy: unhealthy("a", "b")})
		got, _ := l.p.Target(key("web"))
		if got.Tier != TierRemote {
			t.Errorf("%s answers, want other clusters", got.Tier)
		}
		ok, _, _ := results()
		l.net.set("a", ok)
		l.net.set("b", ok)
		after(15 * time.Second)
		l.want(t, "two answers in a row make them healthy", ir.Placement{})
		if l.store.stored > 4 {
			t.Errorf("%d placements are stored, want one for each transition", l.store.stored)
		}
	})
}

// TestDrains checks which tier receives requests while this cluster drains.
func TestDrains(t *testing.T) {
	_, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		target := targetOf("web", ir.Delays{}, "a", "x")
		target.Drains = true
		l := newLab(t, target)
		defer l.stop()
		steps := []struct {
			reason string
			fail   string
			want   Tier
		}{
			{reason: "another cluster comes first", want: TierRemote},
			{reason: "without it, this cluster serves on", fail: "x", want: TierLocal},
			{reason: "without both, nothing is healthy", fail: "a", want: TierLastResort},
		}
		for _, s := range steps {
			if s.fail != "" {
				l.net.set(s.fail, bad)
			}
			after(time.Minute)
			if got, _ := l.p.Target(key("web")); got.Tier != s.want {
				t.Errorf("%s: the tier is %s, want %s", s.reason, got.Tier, s.want)
			}
		}
	})
}

func TestBlind(t *testing.T) {
	_, _, dead := results()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("web", ir.Delays{}, "a", "b"))
		defer l.stop()
		after(30 * time.Second)
		l.net.set("a", dead)
		l.net.set("b", dead)
		after(5 * time.Minute)
		l.want(t, "while no host answers, no endpoint becomes unhealthy", ir.Placement{})
	})
}

func TestTargetsComeAndGo(t *testing.T) {
	_, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		web, api := targetOf("web", ir.Delays{}, "a", "b"), targetOf("api", ir.Delays{}, "a")
		l := newLab(t, web, api)
		defer l.stop()
		after(100 * time.Second)
		single := l.net.count("b")
		if n := l.net.count("a"); n != single {
			t.Errorf("an endpoint of two targets is probed %d times, one of one %d times", n, single)
		}
		l.store.set(web)
		l.p.Changed()
		after(100 * time.Second)
		if n := l.net.count("a"); n < single+9 {
			t.Errorf("an endpoint that one target still has was probed %d times more", n-single)
		}
		l.net.set("a", bad)
		after(20 * time.Second)
		if p := l.store.placement(key("api")); !p.Equal(ir.Placement{}) {
			t.Errorf("the placement of a removed target is stored: %+v", p)
		}
		l.want(t, "the placement of the other target is not stored", ir.Placement{Unhealthy: unhealthy("a")})
		l.store.set()
		l.p.Changed()
		after(20 * time.Second)
		n := l.net.count("a")
		after(100 * time.Second)
		if l.net.count("a") != n || len(l.p.checks)+l.p.due.size()+len(l.p.targets)+len(l.p.waiting) > 0 {
			t.Error("a removed endpoint is still scheduled")
		}
		// The store has lost its placements, so the prober stores them again.
		l.store.placed = map[ir.TargetKey]ir.Placement{}
		l.store.set(web)
		l.p.Changed()
		after(time.Minute)
		l.want(t, "an endpoint that returns starts with a new state", ir.Placement{Unhealthy: unhealthy("a")})
	})
}

func TestOfflineDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := targetOf("web", ir.Delays{}, "a", "b")
		l := newLab(t, web)
		defer l.stop()
		after(time.Minute)
		off := *web
		off.Candidates = append([]ir.Candidate{}, web.Candidates...)
		off.Candidates[0].Origin = &ir.Origin{Source: "a", Offline: true}
		l.store.set(&off)
		l.p.Changed()
		after(time.Second)
		l.want(t, "a device that is offline in the tailnet is unhealthy before any probe fails", ir.Placement{Unhealthy: unhealthy("a")})
		l.store.set(web)
		l.p.Changed()
		after(time.Second)
		l.want(t, "and healthy when it is online", ir.Placement{})
	})
}

// TestAtOnce probes a thousand endpoints that answer late.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts []*ir.Target
		for i := range 1000 {
			ts = append(ts, targetOf(strconv.Itoa(i), ir.Delays{}, fmt.Sprintf("h%d", i)))
		}
		s := &fakeStore{placed: map[ir.TargetKey]ir.Placement{}}
		s.set(ts...)
		var mu sync.Mutex
		running, highest, total := 0, 0, 0
		p := NewProber(s, Options{Checker: CheckerFn(func(ctx context.Context, _ Check) Result {
			mu.Lock()
			running++
			highest, total = max(highest, running), total+1
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			running--
			mu.Unlock()
			return Result{Reason: "timed out"}
		})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		after(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := limits.ProbeSlots / 2; highest != want || running != 0 {
			t.Errorf("%d probes ran at once, want %d for one namespace; %d still run", highest, want, running)
		}
		if total < 3000 {
			t.Errorf("%d probes in a minute", total)
		}
	})
}

// TestProbeSlots lets the probes of one namespace hang for as long as its targets permit.
func TestProbeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ok, bad, _ := results()
		ts := []*ir.Target{targetOf("web", ir.Delays{}, "a", "b", "x")}
		for i := range 2 * limits.ProbeSlots {
			h := targetOf(strconv.Itoa(i), ir.Delays{}, fmt.Sprintf("h%d", i))
			h.Key.Namespace = "hostile"
			h.Shape.HealthCheck.Timeout = time.Hour
			ts = append(ts, h)
		}
		net := &network{result: map[string]Result{"a": ok, "b": ok, "x": ok}, probes: map[string]int{}}
		s := &fakeStore{placed: map[ir.TargetKey]ir.Placement{}}
		s.set(ts...)
		p := NewProber(s, Options{Checker: CheckerFn(func(ctx context.Context, c Check) Result {
			if c.Host[0] == 'h' {
				<-ctx.Done()
				return Result{Reason: "timed out"}
			}
			return net.Check(ctx, c)
		})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		after(time.Minute)
		initial := net.count("a")
		net.set("a", bad)
		after(20 * time.Second)
		if n := net.count("a") - initial; n < 2 {
			t.Errorf("an endpoint of another namespace was probed %d times in 20 seconds", n)
		}
		if got, want := s.placement(key("web")), (ir.Placement{Unhealthy: unhealthy("a")}); !got.Equal(want) {
			t.Errorf("the failure of an endpoint was not noticed: -want, +got\n%s", cmp.Diff(want, got))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestShow(t *testing.T) {
	_, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("web", ir.Delays{}, "a", "x"))
		defer l.stop()
		after(30 * time.Second)
		l.net.set("a", bad)
		after(30 * time.Second)

		r := prometheus.NewPedanticRegistry()
		if err := r.Register(l.p.Metrics()); err != nil {
			t.Fatal(err)
		}
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := []string{f.GetName()}
				for _, lb := range m.GetLabel() {
					name = append(name, lb.GetValue())
				}
				got[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"tailscale_gateway_health_endpoints Healthy":           1,
			"tailscale_gateway_health_endpoints Unhealthy":         1,
			"tailscale_gateway_health_endpoints Unknown":           0,
			"tailscale_gateway_health_scores":                      2,
			"tailscale_gateway_health_transitions_total Healthy":   2,
			"tailscale_gateway_health_transitions_total Unhealthy": 1,
		} {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s is %v, want %v", name, v, want)
			}
		}
		if got["tailscale_gateway_health_probes_total error"] < 3 {
			t.Errorf("%v probes got errors, want at least 3", got["tailscale_gateway_health_probes_total error"])
		}

		w := httptest.NewRecorder()
		l.p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/endpoints", nil))
		var targets []Target
		if err := json.Unmarshal(w.Body.Bytes(), &targets); err != nil {
			t.Fatal(err)
		}
		if len(targets) != 1 || targets[0].Tier != TierRemote || len(targets[0].Endpoints) != 2 {
			t.Fatalf("/endpoints returns %+v", targets)
		}
		if got := [2]string{targets[0].Endpoints[0].ClusterID, targets[0].Endpoints[1].ClusterID}; got != [2]string{"", "cluster-x"} {
			t.Errorf("/endpoints returns the clusters %q, want that of the other cluster alone", got)
		}
		e := targets[0].Endpoints[0]
		if e.LastHealthCheck == nil || time.Since(*e.LastHealthCheck) > 11*time.Second || e.SuccessiveFailures < 3 || e.HealthScore >= ScoreThreshold {
			t.Errorf("last check, failures or score: %+v", e)
		}
		e.LastHealthCheck, e.SuccessiveFailures, e.HealthScore = nil, 0, 0
		want := Endpoint{Name: "a", Address: "a", Port: 80, Status: Unhealthy, IsLocal: true, Reason: "HTTP status 500", Weight: 1, Protocol: ir.ProtocolHTTP}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("-want, +got\n%s", diff)
		}
	})
}
