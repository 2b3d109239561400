// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Limits of remembered ports that have no target and that no pod reports. A ConfigMap holds 1
// MiB.
const (
	// mostReleased applies while every pod reports.
	mostReleased = 1024

	// mostReleasedUnsure applies while a pod does not report: it may still serve any of them.
	mostReleasedUnsure = 4096
)

// Reports are the ports that the pods report.
type Reports struct {
	// Ports that pods report, in any order, possibly several times. A pod reports a port from
	// when it serves it until it stops serving it.
	Ports []ReleasedPort

	// Complete reports whether every running pod has applied the previous config. If not, a
	// port without a report may be in use.
	Complete bool
}

// Allocate assigns a proxy port to each wanted target.
//
// A target keeps its port while it exists, and gets it back when it is added again. Reports of
// pods take precedence over the previous config, which may have been lost, or restored from an old
// copy. A port that a target has released is assigned to another target only when every pod has
// reported and none reports it, and only when no other port is left.
//
// Keys of wanted must be unique. The order of wanted and of reports does not matter. Targets
// for which no port is free are omitted, and the error names them; the returned config contains
// all others even then.
func Allocate(previous Config, wanted []Target, r Reports) (Config, error) {
	return allocate(previous, wanted, r, FirstPort, LastPort)
}

// A slot is a port that can be assigned.
type slot struct {
	port     int32
	protocol corev1.Protocol
}

// A portOwner is a target that has, or had, a port. A target with another protocol is another owner.
type portOwner struct {
	key      string
	protocol corev1.Protocol
}

type allocation struct {
	first, last int32

	// previousOwner maps a slot to its key in the previous config.
	previousOwner map[slot]string

	// previous maps a port owner to its port in the previous config.
	previous map[portOwner]int32

	// reporting maps a slot to the keys that pods report for it: sorted, usually one.
	reporting map[slot][]string

	// reported maps a port owner to the ports that pods report for it, sorted.
	reported map[portOwner][]int32

	// owner maps a slot to its key in the new config.
	owner map[slot]string

	complete bool
}

func allocate(previous Config, wanted []Target, r Reports, first, last int32) (Config, error) {
	a := newAllocation(previous, r, first, last)

	todo := slices.Clone(wanted)
	slices.SortFunc(todo, func(x, y Target) int { return cmp.Compare(x.Key, y.Key) })
	out := Config{Targets: make([]Target, 0, len(todo))}
	// Port owners with a port come before those without, and certain ports before uncertain
	// ones.
	for _, find := range []func(portOwner) (int32, bool){a.confirmed, a.reportedOnly, a.remembered, a.probe} {
		var remaining []Target
		for _, t := range todo {
			port, ok := find(portOwner{t.Key, t.Protocol})
			if !ok {
				remaining = append(remaining, t)
				continue
			}
			t.ProxyPort = port
			a.owner[slot{port, t.Protocol}] = t.Key
			out.Targets = append(out.Targets, t)
		}
		todo = remaining
	}
	slices.SortFunc(out.Targets, func(x, y Target) int { return cmp.Compare(x.Key, y.Key) })
	out.Released = a.released(previous.Released)

	switch len(todo) {
	case 0:
		return out, nil
	case 1:
		return out, errors.Errorf("no port from %d to %d is free for target %q", first, last, todo[0].Key)
	}
	return out, errors.Errorf("no port from %d to %d is free for target %q and %d more", first, last, todo[0].Key, len(todo)-1)
}

func newAllocation(previous Config, r Reports, first, last int32) *allocation {
	a := &allocation{
		first:         first,
		last:          last,
		previousOwner: map[slot]string{},
		previous:      map[portOwner]int32{},
		reporting:     map[slot][]string{},
		reported:      map[portOwner][]int32{},
		owner:         map[slot]string{},
		complete:      r.Complete,
	}
	for _, t := range previous.Targets {
		a.remember(ReleasedPort{ProxyPort: t.ProxyPort, Protocol: t.Protocol, Key: t.Key})
	}
	for _, p := range previous.Released {
		a.remember(p)
	}
	for _, p := range r.Ports {
		if !a.usable(p) {
			continue
		}
		s, o := slot{p.ProxyPort, p.Protocol}, portOwner{p.Key, p.Protocol}
		a.reporting[s] = append(a.reporting[s], p.Key)
		a.reported[o] = append(a.reported[o], p.ProxyPort)
	}
	for s := range a.reporting {
		slices.Sort(a.reporting[s])
		a.reporting[s] = slices.Compact(a.reporting[s])
	}
	for o := range a.reported {
		slices.Sort(a.reported[o])
		a.reported[o] = slices.Compact(a.reported[o])
	}
	return a
}

// usable reports whether a port can be assigned.
func (a *allocation) usable(p ReleasedPort) bool {
	return p.ProxyPort >= a.first && p.ProxyPort <= a.last && (p.Protocol == corev1.ProtocolTCP || p.Protocol == corev1.ProtocolUDP)
}

// remember records the key of a port. The first one takes precedence.
func (a *allocation) remember(p ReleasedPort) {
	s, o := slot{p.ProxyPort, p.Protocol}, portOwner{p.Key, p.Protocol}
	if _, occupied := a.previousOwner[s]; occupied || !a.usable(p) {
		return
	}
	a.previousOwner[s] = p.Key
	if _, exists := a.previous[o]; !exists {
		a.previous[o] = p.ProxyPort
	}
}

// confirmed returns the port that the previous config has and a pod reports.
func (a *allocation) confirmed(o portOwner) (int32, bool) {
	port, ok := a.previous[o]
	return port, ok && a.free(slot{port, o.protocol}) && slices.Contains(a.reported[o], port)
}

// reportedOnly returns a port that a pod reports, if the previous config is older.
func (a *allocation) reportedOnly(o portOwner) (int32, bool) {
	for _, port := range a.reported[o] {
		if a.free(slot{port, o.protocol}) {
			return port, true
		}
	}
	return 0, false
}

// remembered returns the port of the previous config, unless a pod uses it for another target.
func (a *allocation) remembered(o portOwner) (int32, bool) {
	port, ok := a.previous[o]
	s := slot{port, o.protocol}
	return port, ok && a.free(s) && !a.othersReport(s, o.key)
}

// probe searches the range from the port owner's hash.
func (a *allocation) probe(o portOwner) (int32, bool) {
	if port, ok := a.scan(o, func(s slot) bool { return a.previousOwner[s] == "" }); ok {
		return port, true
	}
	if !a.complete {
		return 0, false
	}
	return a.scan(o, func(slot) bool { return true })
}

// scan returns a port that is free, that no pod reports for another port owner, and that is
// acceptable.
func (a *allocation) scan(o portOwner, acceptable func(slot) bool) (int32, bool) {
	n := a.last - a.first + 1
	start := int32(hash(o) % uint32(n)) // Less than n, which is an int32.
	for i := range n {
		s := slot{a.first + (start+i)%n, o.protocol}
		if a.free(s) && !a.othersReport(s, o.key) && acceptable(s) {
			return s.port, true
		}
	}
	return 0, false
}

func hash(o portOwner) uint32 {
	h := fnv.New32a()
	// Writing to a hash never fails.
	_, _ = io.WriteString(h, string(o.protocol)+"/"+o.key)
	return h.Sum32()
}

func (a *allocation) free(s slot) bool {
	_, occupied := a.owner[s]
	return !occupied
}

func (a *allocation) othersReport(s slot, key string) bool {
	return slices.ContainsFunc(a.reporting[s], func(k string) bool { return k != key })
}

// released returns the ports that port owners had and no target has: those that were released
// before, oldest first, then those that are released now. If there are too many, the oldest
// that no pod reports are omitted.
func (a *allocation) released(previous []ReleasedPort) []ReleasedPort {
	seen := map[slot]bool{}
	var out []ReleasedPort
	add := func(s slot) {
		if seen[s] || !a.free(s) {
			return
		}
		seen[s] = true
		out = append(out, ReleasedPort{ProxyPort: s.port, Protocol: s.protocol, Key: a.lastOwner(s)})
	}
	for _, p := range previous {
		if a.usable(p) {
			add(slot{p.ProxyPort, p.Protocol})
		}
	}
	var fresh []slot
	for s := range a.previousOwner {
		fresh = append(fresh, s)
	}
	for s := range a.reporting {
		fresh = append(fresh, s)
	}
	slices.SortFunc(fresh, func(x, y slot) int {
		return cmp.Or(cmp.Compare(x.port, y.port), cmp.Compare(x.protocol, y.protocol))
	})
	for _, s := range fresh {
		add(s)
	}

	most := mostReleased
	if !a.complete {
		most = mostReleasedUnsure
	}
	excess := len(out) - most
	return slices.DeleteFunc(out, func(p ReleasedPort) bool {
		if excess <= 0 || len(a.reporting[slot{p.ProxyPort, p.Protocol}]) > 0 {
			return false
		}
		excess--
		return true
	})
}

// lastOwner returns the key of a slot without an owner: the reported one, else that of the
// previous config.
func (a *allocation) lastOwner(s slot) string {
	if r := a.reporting[s]; len(r) > 0 && !slices.Contains(r, a.previousOwner[s]) {
		return r[0]
	}
	return a.previousOwner[s]
}
