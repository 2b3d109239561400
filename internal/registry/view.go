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
	// AliveWithin is how long ago a cluster must have shown a sign of life.
	AliveWithin = 30 * time.Minute

	// ExpiresAfter is how long a cluster must have been silent before others may
	// delete its record.
	ExpiresAfter = 7 * 24 * time.Hour
)

// A View is the tailnet as it was seen. Times are those of Tailscale's API.
type View struct {
	Services   []tailscale.Service
	ServicesAt time.Time

	Devices   []tailscale.Device
	DevicesAt time.Time
}

// A Member is a cluster that shares a service.
type Member struct {
	Record

	// Name and Addresses of the cluster's own service.
	Name  string
	Addrs []string

	// Alive reports whether a machine of the cluster is online or was so within
	// AliveWithin, or the record was written within that time, or it names no
	// machine yet.
	Alive bool

	// Expired reports that the record may be deleted by anyone.
	Expired bool
}

// Members returns the clusters that share a service, by cluster ID, and the names
// of services that claim to be one's record and are not.
func (v View) Members(service string) ([]Member, []string) {
	var out []Member
	var ignored []string
	var devices map[string]*tailscale.Device
	for i := range v.Services {
		s := &v.Services[i]
		if s.Annotations[meta.AnnotationSharedService] != service {
			continue
		}
		r, ok, err := decode(s)
		if err != nil || !ok {
			ignored = append(ignored, s.Name)
			continue
		}
		if devices == nil {
			devices = v.index()
		}
		m := Member{Record: r, Name: s.Name, Addrs: s.Addrs}
		m.Alive, m.Expired = v.status(r, devices)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.Sort(ignored)
	return out, ignored
}

func (v View) index() map[string]*tailscale.Device {
	out := make(map[string]*tailscale.Device, len(v.Devices))
	for i := range v.Devices {
		out[v.Devices[i].NodeID] = &v.Devices[i]
	}
	return out
}

// status judges a record by its machines. Writing a record is a sign of life, too:
// a list of devices may be too old to know the machines that it names.
func (v View) status(r Record, devices map[string]*tailscale.Device) (alive, expired bool) {
	if len(r.Nodes) == 0 {
		return true, false
	}
	// A record cannot be from the future, whatever it says.
	last := r.Updated
	if last.After(v.DevicesAt.Add(AliveWithin)) {
		last = time.Time{}
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

// Machine returns the name of the machine that has the name of a service, or "".
// Devices of other tailnets have names of their own.
func (v View) Machine(service string) string {
	label := strings.TrimPrefix(service, servicePrefix)
	for _, d := range v.Devices {
		if first, _, _ := strings.Cut(d.Name, "."); first == label && !d.IsExternal {
			return d.Name
		}
	}
	return ""
}

// alive are the members that live.
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
