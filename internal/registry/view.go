// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// AliveWithin is how recent a cluster's last sign of life must be for the cluster to be alive.
	AliveWithin = 30 * time.Minute

	// ExpiresAfter is the time without a sign of life after which other clusters may delete a
	// cluster's record.
	ExpiresAfter = 7 * 24 * time.Hour

	// renewsAfter is the age at which a cluster writes its record again while the record lists no
	// machines. The rest of ExpiresAfter is for an outage of the provider.
	renewsAfter = 24 * time.Hour
)

// A View is the state of the tailnet in one list. Times are by the clock of Tailscale's API.
type View struct {
	Services   []tailscale.Service
	ServicesAt time.Time

	Devices   []tailscale.Device
	DevicesAt time.Time
}

// A Member is a cluster that shares a service.
type Member struct {
	Record

	// Name and Addresses are those of the cluster's separate service.
	Name  string
	Addrs []string

	// Alive reports whether a machine of the cluster is online or was online within AliveWithin, or
	// the record was written within that time. A record that lists no machines yet is alive until
	// it expires.
	Alive bool

	// Expired reports whether every cluster may delete the record.
	Expired bool
}

// Members returns the clusters that share a service, by cluster ID, and the names of services with
// records that are not valid.
func (v View) Members(service string) ([]Member, []string) {
	var out []Member
	var ignored []string
	for i := range v.Services {
		s := &v.Services[i]
		if s.Annotations[meta.AnnotationSharedService] != service {
			continue
		}
		r, ok, err := RecordOf(s)
		if err != nil || !ok {
			ignored = append(ignored, s.Name)
			continue
		}
		out = append(out, Member{Record: r, Name: s.Name, Addrs: s.Addrs})
	}
	devices := v.machines(out)
	for i := range out {
		out[i].Alive, out[i].Expired = v.status(out[i].Record, devices)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.Sort(ignored)
	return out, ignored
}

// machines returns the devices that the records name, by node ID. A tailnet may have ten thousand devices
// and the members of a service a few machines, and each service asks for them several times.
func (v View) machines(members []Member) map[string]*tailscale.Device {
	out := map[string]*tailscale.Device{}
	for i := range members {
		for _, id := range members[i].Nodes {
			out[id] = nil
		}
	}
	if len(out) == 0 {
		return out
	}
	for i := range v.Devices {
		d := &v.Devices[i]
		if _, ok := out[d.NodeID]; ok {
			out[d.NodeID] = d
		}
	}
	return out
}

// status determines the state of a record from its machines. The time of the record also counts,
// because a list of devices may be older than the machines in the record.
func (v View) status(r Record, devices map[string]*tailscale.Device) (alive, expired bool) {
	// A record time in the future is ignored.
	last := r.Updated
	if last.After(v.DevicesAt.Add(AliveWithin)) {
		last = time.Time{}
	}
	if len(r.Nodes) == 0 {
		// The record is the only sign of life. Its cluster renews it (see renewsAfter).
		expired = v.DevicesAt.Sub(last) > ExpiresAfter
		return !expired, expired
	}
	for _, id := range r.Nodes {
		d := devices[id]
		if d == nil {
			continue
		}
		if d.ConnectedToControl {
			return true, false
		}
		if d.LastSeen != nil && d.LastSeen.After(last) {
			last = d.LastSeen.Time
		}
	}
	silent := v.DevicesAt.Sub(last)
	return silent <= AliveWithin, silent > ExpiresAfter
}

// Service returns a service of the view, or nil.
func (v View) Service(name string) *tailscale.Service {
	for i := range v.Services {
		if v.Services[i].Name == name {
			return &v.Services[i]
		}
	}
	return nil
}

// Machine returns the name of the machine that has the name of a service, or "". It ignores devices
// of other tailnets, whose names are in other domains.
func (v View) Machine(service string) string {
	label := strings.TrimPrefix(service, servicePrefix)
	for i := range v.Devices {
		d := &v.Devices[i]
		if first, _, _ := strings.Cut(d.Name, "."); first == label && !d.IsExternal {
			return d.Name
		}
	}
	return ""
}

// alive returns the members that are alive.
func alive(ms []Member) []Member {
	var out []Member
	for _, m := range ms {
		if m.Alive {
			out = append(out, m)
		}
	}
	return out
}

func member(ms []Member, cluster string) *Member {
	for i := range ms {
		if ms[i].Cluster == cluster {
			return &ms[i]
		}
	}
	return nil
}
