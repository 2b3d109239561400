// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

// sparsePolicy lets not everyone see everyone.
const sparsePolicy = `{
	"tagOwners": {"tag:k8s": [], "tag:web": [], "tag:ops": []},
	"grants": [
		{"src": ["tag:k8s"], "dst": ["svc:s1", "tag:web"], "ip": ["*"]},
		{"src": ["tag:ops"], "dst": ["*"], "ip": ["tcp:22"]},
		{"src": ["tag:web"], "dst": ["10.1.0.0/16"], "ip": ["*"]},
	],
	"autoApprovers": {"services": {"tag:k8s": ["tag:k8s", "tag:web"]}},
}`

// TestGenerations tests that a map with all changes equals a new one.
func TestGenerations(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			s := newServer(t, Options{Policy: sparsePolicy})
			tags := [][]string{{"tag:k8s"}, {"tag:web"}, {"tag:ops"}, {"tag:k8s", "tag:web"}, nil}
			self := deviceOf(t, s, Puppet{NodeID: "nSelf", Hostname: "self", Tags: []string{"tag:k8s"}})
			s.mu.Lock()
			last := s.netMapLocked(self)
			s.mu.Unlock()
			m := &mapReader{t: t, peers: map[tailcfg.NodeID]*tailcfg.Node{}}
			m.apply(frame(t, last.whole(s)))

			for i := range 300 {
				description := mutate(t, s, rnd, i, tags)
				s.mu.Lock()
				g := s.generationLocked()
				current := s.netMapLocked(self)
				s.stale.all = true
				fresh := s.generationLocked()
				s.mu.Unlock()
				if !slices.Equal(g.peers, fresh.peers) || !sameSlice(g.filter, fresh.filter) {
					t.Fatalf("after step %d (%s), the generation differs from a new one", i, description)
				}
				for _, r := range current.delta(last) {
					m.apply(frame(t, r))
				}
				last = current
				if diff := m.diff(s, self); diff != "" {
					t.Fatalf("after step %d (%s), the node's map differs: -want, +got:\n%s", i, description, diff)
				}
			}
		})
	}
}

func frame(t *testing.T, r *tailcfg.MapResponse) []byte {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("cannot encode: %v", err)
	}
	return append([]byte{byte(len(b)), byte(len(b) >> 8), byte(len(b) >> 16), byte(len(b) >> 24)}, b...)
}

// mutate changes something at random, with the call that a handler makes.
func mutate(t *testing.T, s *Server, rnd *rand.Rand, i int, tags [][]string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, 0, len(s.st.Devices))
	for id, d := range s.st.Devices {
		if d.StableID != "nSelf" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) == 0 || rnd.IntN(6) == 0 {
		d := s.st.addDevice(s.now())
		d.Tags, d.Authorized, d.KeyExpiryDisabled, d.online = tags[rnd.IntN(len(tags))], true, true, true
		s.noteHostinfo(d, &tailcfg.Hostinfo{Hostname: fmt.Sprintf("n%d", i), RoutableIPs: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("0.0.0.0/0")}})
		s.deviceChangedLocked(d)
		return "join"
	}
	d := s.st.Devices[ids[rnd.IntN(len(ids))]]
	name := fmt.Sprintf("svc:s%d", rnd.IntN(3))
	switch rnd.IntN(11) {
	case 0:
		s.removeLocked(d)
		return "remove"
	case 1:
		d.online = !d.online
		s.deviceChangedLocked(d)
		return "online"
	case 2:
		d.Tags = tags[rnd.IntN(len(tags))]
		s.deviceChangedLocked(d)
		return "tags"
	case 3:
		d.Authorized = !d.Authorized
		s.deviceChangedLocked(d)
		return "authorize"
	case 4:
		d.Endpoints = []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i))}
		s.deviceChangedLocked(d)
		return "endpoints"
	case 5:
		if s.st.Services[name] == nil {
			v := &service{Name: name, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}
			if err := s.allocateLocked(v); err != nil {
				t.Errorf("cannot allocate: %v", err)
			}
			s.st.Services[name] = v
		} else {
			delete(s.st.Services, name)
		}
		s.servicesChangedLocked()
		return "service"
	case 6, 7:
		s.takeOffersLocked(d, map[string]*tailcfg.VIPService{name: {
			Name: tailcfg.ServiceName(name), Active: rnd.IntN(4) > 0,
			Ports: []tailcfg.ProtoPortRange{{Proto: 6, Ports: tailcfg.PortRange{First: 80, Last: 80}}},
		}})
		s.hostsChangedLocked()
		return "offer"
	case 8:
		d.EnabledRoutes = [][]string{nil, {"10.1.2.0/24"}, {"0.0.0.0/0", "10.1.2.0/24"}}[rnd.IntN(3)]
		s.deviceChangedLocked(d)
		return "routes"
	case 9:
		s.st.Settings["routeSelection"] = routeSelections[rnd.IntN(len(routeSelections))]
		s.changedLocked()
		return "route selection"
	default:
		d.HomeDERP = 1 + rnd.IntN(3)
		s.deviceChangedLocked(d)
		return "region"
	}
}

// tailnet returns a server with devices, of which the returned ones are clients.
func tailnet(t testing.TB, devices, clients int) (*Server, []*device) {
	t.Helper()
	s := newServer(t, Options{Policy: PolicyWithAutoApprover})
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*device
	for i := range devices {
		d := s.st.addDevice(s.now())
		d.Tags, d.Authorized, d.KeyExpiryDisabled, d.online = []string{"tag:k8s"}, true, true, true
		d.Hostinfo, d.Label = &tailcfg.Hostinfo{Hostname: fmt.Sprintf("n%d", i), OS: "linux"}, fmt.Sprintf("n%d", i)
		if i < clients {
			out = append(out, d)
		}
	}
	s.changedLocked()
	return s, out
}

// TestCostOfChange counts what a change costs, which must not grow with the tailnet.
func TestCostOfChange(t *testing.T) {
	type cost struct {
		Work      work
		Responses int
		Patches   int
	}
	costs := map[int]cost{}
	for _, n := range []int{50, 5000} {
		const clients = 20
		s, cs := tailnet(t, n, clients)
		last := make([]*netMap, clients)
		s.mu.Lock()
		for i, d := range cs {
			last[i] = s.netMapLocked(d)
		}
		s.work = work{}
		var other *device
		for _, d := range s.st.Devices {
			if d.ID == int64(n) {
				other = d
			}
		}
		other.online = false
		s.deviceChangedLocked(other)
		var c cost
		for i, d := range cs {
			for _, r := range s.netMapLocked(d).delta(last[i]) {
				c.Responses++
				c.Patches += len(r.PeersChangedPatch)
				if len(r.Peers) > 0 || len(r.PeersChanged) > 0 || r.Node != nil {
					t.Errorf("a change of one device is a patch: got %+v", r)
				}
			}
		}
		c.Work = s.work
		s.mu.Unlock()
		costs[n] = c
	}
	want := cost{Work: work{peers: 1}, Responses: 20, Patches: 20}
	for n, got := range costs {
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(work{})); diff != "" {
			t.Errorf("with %d devices, a change makes one node, for all clients: -want, +got:\n%s", n, diff)
		}
	}
}

// BenchmarkChange prints what one change costs each streaming node, its response included.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			const clients = 100
			s, cs := tailnet(b, n, clients)
			last := make([]*netMap, clients)
			for i, d := range cs {
				last[i], _ = s.netMap(d)
			}
			s.mu.Lock()
			other := s.st.Devices[int64(n)]
			s.mu.Unlock()
			start := time.Now()
			for b.Loop() {
				s.mu.Lock()
				other.online = !other.online
				s.deviceChangedLocked(other)
				s.mu.Unlock()
				for i, d := range cs {
					m, _ := s.netMap(d)
					for _, r := range m.responses(s, last[i], false) {
						if _, err := json.Marshal(r); err != nil {
							b.Fatalf("cannot encode: %v", err)
						}
					}
					last[i] = m
				}
			}
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000/float64(b.N)/clients, "ms/node/change")
		})
	}
}
