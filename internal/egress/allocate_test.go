// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP

func target(key string, p corev1.Protocol, port int32) Target {
	return Target{Key: key, Host: "100.64.0.1", Port: 80, Protocol: p, ProxyPort: port}
}

func held(key string, port int32) ReleasedPort {
	return ReleasedPort{ProxyPort: port, Protocol: tcp, Key: key}
}

func TestAllocate(t *testing.T) {
	home := func(key string) int32 {
		return 100 + int32(hash(portOwner{key, tcp})%8)
	}
	// Two targets with the same first port.
	clash := ""
	for i := range 100 {
		if k := fmt.Sprintf("c%d", i); home(k) == home("a") {
			clash = k
			break
		}
	}
	next := func(port int32) int32 { return 100 + (port-100+1)%8 }
	type want struct {
		config Config
		err    string
	}
	cases := map[string]struct {
		reason   string
		previous Config
		wanted   []Target
		reports  Reports
		last     int32
		want     want
	}{
		"Nothing": {
			reason: "Without targets, no ports are needed",
			want:   want{config: Config{}},
		},
		"ByHash": {
			reason: "A new target gets the port of its hash",
			wanted: []Target{target("a", tcp, 0)},
			want:   want{config: Config{Targets: []Target{target("a", tcp, home("a"))}}},
		},
		"Clash": {
			reason: "A target whose port is in use gets the next",
			wanted: []Target{target(clash, tcp, 0), target("a", tcp, 0)},
			want:   want{config: Config{Targets: []Target{target("a", tcp, home("a")), target(clash, tcp, next(home("a")))}}},
		},
		"KeepsPort": {
			reason:   "A target that stays keeps its port, whatever its hash",
			previous: Config{Targets: []Target{target("a", tcp, next(home("a")))}},
			wanted:   []Target{target("a", tcp, 0)},
			want:     want{config: Config{Targets: []Target{target("a", tcp, next(home("a")))}}},
		},
		"ProtocolsApart": {
			reason:   "TCP and UDP do not share a port's number space",
			previous: Config{Targets: []Target{target("a", tcp, 101)}},
			wanted:   []Target{target("a", udp, 0)},
			reports:  Reports{Complete: true},
			last:     101,
			want: want{config: Config{
				Targets:  []Target{target("a", udp, 100+int32(hash(portOwner{"a", udp})%2))},
				Released: []ReleasedPort{held("a", 101)},
			}},
		},
		"ReportedWins": {
			reason:   "Reports of pods take precedence over a config restored from an old copy",
			previous: Config{Targets: []Target{target("a", tcp, 101), target("b", tcp, 102)}},
			wanted:   []Target{target("a", tcp, 0), target("b", tcp, 0)},
			reports:  Reports{Ports: []ReleasedPort{held("a", 102), held("b", 103)}, Complete: true},
			want: want{config: Config{
				Targets:  []Target{target("a", tcp, 102), target("b", tcp, 103)},
				Released: []ReleasedPort{held("a", 101)},
			}},
		},
		"ConfigLost": {
			reason:  "Pods report the ports of a lost config, including those of removed targets",
			wanted:  []Target{target("a", tcp, 0)},
			reports: Reports{Ports: []ReleasedPort{held("a", 107), held("gone", home("a"))}, Complete: true},
			want: want{config: Config{
				Targets:  []Target{target("a", tcp, 107)},
				Released: []ReleasedPort{held("gone", home("a"))},
			}},
		},
		"Mixed": {
			reason:   "While pods disagree the port of the config is kept",
			previous: Config{Targets: []Target{target("a", tcp, 105)}},
			wanted:   []Target{target("a", tcp, 0)},
			reports:  Reports{Ports: []ReleasedPort{held("a", 101), held("a", 105)}, Complete: true},
			want: want{config: Config{
				Targets:  []Target{target("a", tcp, 105)},
				Released: []ReleasedPort{held("a", 101)},
			}},
		},
		"ComesBack": {
			reason:   "A target that is added again gets its old port back",
			previous: Config{Released: []ReleasedPort{held("a", 101)}},
			wanted:   []Target{target("a", tcp, 0)},
			want:     want{config: Config{Targets: []Target{target("a", tcp, 101)}}},
		},
		"Released": {
			reason:   "Released ports are remembered in order",
			previous: Config{Targets: []Target{target("a", tcp, 101)}, Released: []ReleasedPort{held("b", 107)}},
			want:     want{config: Config{Released: []ReleasedPort{held("b", 107), held("a", 101)}}},
		},
		"Full": {
			reason:   "The error names targets without a port, and others keep theirs",
			previous: Config{Targets: []Target{target("b", tcp, 100)}},
			wanted:   []Target{target("a", tcp, 0), target("b", tcp, 0), target("c", tcp, 0)},
			reports:  Reports{Complete: true},
			last:     100,
			want: want{
				config: Config{Targets: []Target{target("b", tcp, 100)}},
				err:    `no port from 100 to 100 is free for target "a" and 1 more`,
			},
		},
		"ReusedLast": {
			reason:   "When no other port is left, a released port without a report is reused",
			previous: Config{Released: []ReleasedPort{held("gone", 100)}},
			wanted:   []Target{target("a", tcp, 0)},
			reports:  Reports{Complete: true},
			last:     100,
			want:     want{config: Config{Targets: []Target{target("a", tcp, 100)}}},
		},
		"StillReported": {
			reason:   "A released port is not reused while a pod reports it",
			previous: Config{Released: []ReleasedPort{held("gone", 100)}},
			wanted:   []Target{target("a", tcp, 0)},
			reports:  Reports{Ports: []ReleasedPort{held("gone", 100)}, Complete: true},
			last:     100,
			want: want{
				config: Config{Released: []ReleasedPort{held("gone", 100)}},
				err:    `no port from 100 to 100 is free for target "a"`,
			},
		},
		"NotAllReported": {
			reason:   "A released port is not reused until all pods report, as after a restore that keeps the ConfigMap",
			previous: Config{Released: []ReleasedPort{held("gone", 100)}},
			wanted:   []Target{target("a", tcp, 0)},
			last:     100,
			want: want{
				config: Config{Released: []ReleasedPort{held("gone", 100)}},
				err:    `no port from 100 to 100 is free for target "a"`,
			},
		},
		"Nonsense": {
			reason:   "Ports out of range, and unknown protocols, are ignored",
			previous: Config{Targets: []Target{target("a", tcp, 22)}, Released: []ReleasedPort{{ProxyPort: 101, Protocol: "SCTP", Key: "x"}}},
			wanted:   []Target{target("a", tcp, 0)},
			reports:  Reports{Ports: []ReleasedPort{held("a", 40000)}, Complete: true},
			want:     want{config: Config{Targets: []Target{target("a", tcp, home("a"))}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := tc.last
			if last == 0 {
				last = 107
			}
			got, err := allocate(tc.previous, tc.wanted, tc.reports, 100, last)
			if diff := cmp.Diff(tc.want.config, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nallocate(...): -want, +got:\n%s", tc.reason, diff)
			}
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if diff := cmp.Diff(tc.want.err, msg); diff != "" {
				t.Errorf("\n%s\nallocate(...): -want error, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAllocateForgets(t *testing.T) {
	previous := Config{}
	for i := range mostReleased + 10 {
		previous.Released = append(previous.Released, held(strconv.Itoa(i), FirstPort+int32(i)))
	}
	reported := previous.Released[0]
	got, err := Allocate(previous, nil, Reports{Ports: []ReleasedPort{reported}, Complete: true})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]ReleasedPort{reported}, previous.Released[11:]...)
	if diff := cmp.Diff(want, got.Released); diff != "" {
		t.Errorf("want the oldest omitted, except those that a pod reports: -want, +got:\n%s", diff)
	}
	if got, err = Allocate(previous, nil, Reports{}); err != nil || len(got.Released) != len(previous.Released) {
		t.Errorf("want none omitted while a pod has not reported, got %d of %d, %v", len(got.Released), len(previous.Released), err)
	}
}

// A model is an endpoints object with its egress pods: each has applied some written config,
// and has reported some applied config.
type model struct {
	t      *testing.T
	rnd    *rand.Rand
	last   int32
	wanted map[string]Target
	config Config
	acts   []Config
	says   []*Config

	// old is a former config, for a restore.
	old Config
}

func (m *model) reports() Reports {
	r := Reports{Complete: true}
	for _, c := range m.says {
		if c == nil {
			r.Complete = false
			continue
		}
		for _, t := range c.Targets {
			r.Ports = append(r.Ports, ReleasedPort{ProxyPort: t.ProxyPort, Protocol: t.Protocol, Key: t.Key})
		}
	}
	m.rnd.Shuffle(len(r.Ports), func(i, j int) { r.Ports[i], r.Ports[j] = r.Ports[j], r.Ports[i] })
	return r
}

func (m *model) targets() []Target {
	var out []Target
	for _, t := range m.wanted {
		out = append(out, t)
	}
	m.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// run runs the function once. previous is the config that it reads. lost reports whether
// previous is not the last written config.
func (m *model) run(previous Config, lost bool) {
	m.t.Helper()
	reports, targets := m.reports(), m.targets()
	got, err := allocate(previous, targets, reports, 100, m.last)
	repeat, _ := allocate(previous, m.targets(), m.reports(), 100, m.last)
	if diff := cmp.Diff(got, repeat); diff != "" {
		m.t.Fatalf("the order of the input changes the output: -first, +second:\n%s", diff)
	}
	if (err == nil) != (len(got.Targets) == len(targets)) {
		m.t.Fatalf("%d of %d targets have a port, and the error is %v", len(got.Targets), len(targets), err)
	}
	owners := map[slot]string{}
	for _, t := range got.Targets {
		s := slot{t.ProxyPort, t.Protocol}
		if owners[s] != "" {
			m.t.Fatalf("%s and %s share %v", owners[s], t.Key, s)
		}
		owners[s] = t.Key
	}
	for _, p := range got.Released {
		if s := (slot{p.ProxyPort, p.Protocol}); owners[s] != "" {
			m.t.Fatalf("%v is released and has target %s", s, owners[s])
		}
	}
	for _, p := range reports.Ports {
		k := owners[slot{p.ProxyPort, p.Protocol}]
		// Pods that have applied configs from before and after a loss may contradict each
		// other.
		own := ReleasedPort{ProxyPort: p.ProxyPort, Protocol: p.Protocol, Key: k}
		if k != "" && k != p.Key && !slices.Contains(reports.Ports, own) {
			m.t.Fatalf("%s gets port %d, which a pod reports for %s", k, p.ProxyPort, p.Key)
		}
	}
	if !lost {
		m.check(got, owners, reports)
	}
	m.config = got
}

// check checks the invariants between two runs.
func (m *model) check(got Config, owners map[slot]string, r Reports) {
	m.t.Helper()
	for _, t := range m.config.Targets {
		if w, stays := m.wanted[t.Key]; stays && w.Protocol == t.Protocol && owners[slot{t.ProxyPort, t.Protocol}] != t.Key {
			m.t.Fatalf("%s had port %d and stays; now %v", t.Key, t.ProxyPort, got.Targets)
		}
	}
	if r.Complete {
		return
	}
	for _, p := range m.config.Released {
		if k := owners[slot{p.ProxyPort, p.Protocol}]; k != "" && k != p.Key {
			m.t.Fatalf("%s gets port %d of %s while a pod has not reported", k, p.ProxyPort, p.Key)
		}
	}
}

func (m *model) say(pod int) {
	c := m.acts[pod]
	m.says[pod] = &c
}

func (m *model) step(op byte) {
	pod := m.rnd.IntN(len(m.acts))
	switch op % 8 {
	case 0, 1:
		t := target(fmt.Sprintf("endpoint/%d/80", m.rnd.IntN(12)), tcp, 0)
		if m.rnd.IntN(3) == 0 {
			t.Protocol = udp
		}
		m.wanted[t.Key] = t
	case 2:
		delete(m.wanted, fmt.Sprintf("endpoint/%d/80", m.rnd.IntN(12)))
	case 3: // A pod reads the ConfigMap, and reports if it has a Machine to report to.
		m.acts[pod] = m.config
		if m.says[pod] != nil {
			m.say(pod)
		}
	case 4: // A pod reports to its new Machine.
		m.say(pod)
	case 5: // The composite is made again, with new Machines; the ConfigMap stays.
		for i := range m.says {
			m.says[i] = nil
		}
	case 6: // A copy of the ConfigMap is taken, or comes back.
		if m.rnd.IntN(2) == 0 {
			m.old = m.config
			return
		}
		for i := range m.acts {
			m.say(i)
		}
		m.run(m.old, true)
		return
	case 7: // The ConfigMap is lost.
		for i := range m.acts {
			m.say(i)
		}
		m.run(Config{}, true)
		return
	}
	m.run(m.config, false)
}

func play(t *testing.T, seed uint64, last int32, ops []byte) {
	t.Helper()
	m := &model{
		t:      t,
		rnd:    rand.New(rand.NewPCG(seed, 0)),
		last:   last,
		wanted: map[string]Target{},
		acts:   make([]Config, 3),
		says:   make([]*Config, 3),
	}
	for _, op := range ops {
		m.step(op)
	}
}

func TestAllocateProperties(t *testing.T) {
	for seed := range uint64(90) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 150)
		for i := range ops {
			ops[i] = byte(rnd.IntN(5 + rnd.IntN(4))) // Few restores.
		}
		// Sometimes there are fewer ports than targets.
		play(t, seed, []int32{105, 113, 200}[seed%3], ops)
	}
}

func FuzzAllocate(f *testing.F) {
	f.Add(uint64(1), []byte{0, 0, 3, 4, 2, 0, 5, 1, 6, 7})
	f.Fuzz(func(t *testing.T, seed uint64, ops []byte) {
		play(t, seed, 106, ops)
	})
}

func TestEncode(t *testing.T) {
	c := Config{
		Targets:  []Target{target("b", tcp, 10001), target("a", udp, 10000)},
		Released: []ReleasedPort{held("z", 10003), held("y", 10002)},
	}
	s, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(c.Targets)
	repeat, err := c.Encode()
	if err != nil || s != repeat {
		t.Errorf("equal configs differ: %s, %s, %v", s, repeat, err)
	}
	got, err := Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("Decode(Encode(...)): -want, +got:\n%s", diff)
	}
	if _, err := Decode("{"); err == nil {
		t.Error("want an error for invalid text")
	}
}
