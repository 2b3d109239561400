// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// hostsMaxAge is how long hosts are believed that nothing contradicts. The API
// tells hosts per service only, so asking at each poll would cost a call each.
const hostsMaxAge = 5 * time.Minute

// claims are what agents say about a service: by node ID, whether they
// advertise it, and whether control accepted them.
type claims map[string]claim

type claim struct {
	Advertised bool
	Accepted   bool
}

// settled tells whether hosts are what the agents' claims let one expect.
func (c claims) settled(hosts []tailscale.Host) bool {
	known := map[string]tailscale.Host{}
	for _, h := range hosts {
		if _, ours := c[h.NodeID]; ours && !c[h.NodeID].Advertised {
			return false
		}
		known[h.NodeID] = h
	}
	for id, cl := range c {
		h, ok := known[id]
		if cl.Advertised && (!ok || !cl.Accepted || !h.Configured || !h.Approved()) {
			return false
		}
	}
	return true
}

// agentClaims reads the claims about a service off machines.
func agentClaims(machines []v1alpha1.Machine, service string) claims {
	out := claims{}
	for _, m := range machines {
		if m.Status.Agent == nil || m.Status.AtProvider.NodeID == "" {
			continue
		}
		for _, s := range m.Status.Agent.Services {
			if s.Name == service {
				out[m.Status.AtProvider.NodeID] = claim{Advertised: s.Advertised, Accepted: s.Accepted}
			}
		}
	}
	return out
}

// A hostsCache remembers the hosts of settled services.
type hostsCache struct {
	maxAge time.Duration

	mu sync.Mutex
	by map[types.UID]cachedHosts
}

type cachedHosts struct {
	hosts   []tailscale.Host
	at      time.Time
	waiting bool // Agents expect other hosts.
}

func newHostsCache(maxAge time.Duration) *hostsCache {
	return &hostsCache{maxAge: maxAge, by: map[types.UID]cachedHosts{}}
}

func (c *hostsCache) get(uid types.UID, cl claims) ([]tailscale.Host, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Without claims nobody would tell of a change.
	h, ok := c.by[uid]
	if !ok || len(cl) == 0 || !cl.settled(h.hosts) || time.Since(h.at) > c.maxAge {
		delete(c.by, uid)
		return nil, false
	}
	h.waiting = false
	c.by[uid] = h
	return h.hosts, true
}

// waiting tells whether agents expect something else than the last hosts say.
func (c *hostsCache) waiting(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[uid].waiting
}

func (c *hostsCache) put(uid types.UID, hosts []tailscale.Host, cl claims) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[uid] = cachedHosts{hosts: hosts, at: time.Now(), waiting: !cl.settled(hosts)}
}

// observeHosts fills in the hosts, and notes which of them Update must approve.
func (e *external) observeHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	cl, err := e.claims(ctx, mg.GetNamespace(), name)
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	age := time.Duration(0)
	hosts, ok := e.hosts.get(mg.GetUID(), cl)
	if !ok {
		age = freshDevices
		if hosts, err = e.api.Hosts(ctx, name); err != nil {
			return errors.Wrap(err, "cannot list hosts of the service")
		}
		e.hosts.put(mg.GetUID(), hosts, cl)
	}
	devices, err := e.api.Devices(ctx, age)
	if err != nil {
		return errors.Wrap(err, "cannot list devices")
	}
	before := mg.Status.AtProvider.Hosts
	mg.Status.AtProvider.Hosts = serviceHosts(hosts, devices)
	for _, ev := range transitions(before, mg.Status.AtProvider.Hosts) {
		e.record.Event(mg, ev)
	}
	e.approve = toApprove(mg.Spec.ForProvider, hosts, devices)
	return nil
}

// serviceHosts joins hosts with what is known of their devices, by name.
func serviceHosts(hosts []tailscale.Host, devices []tailscale.Device) []v1alpha1.ServiceHost {
	byID := index(devices)
	var out []v1alpha1.ServiceHost
	for _, h := range hosts {
		d := byID[h.NodeID]
		out = append(out, v1alpha1.ServiceHost{
			NodeID:     h.NodeID,
			Name:       d.Name,
			Online:     d.ConnectedToControl,
			Configured: h.Configured,
			Approval:   h.Approval,
		})
	}
	slices.SortFunc(out, func(a, b v1alpha1.ServiceHost) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.NodeID, b.NodeID))
	})
	return out
}

// toApprove returns the hosts that wait for an approval that the object may
// give: those with one of its host tags.
func toApprove(p v1alpha1.VIPServiceParameters, hosts []tailscale.Host, devices []tailscale.Device) []string {
	if p.AutoApprove != nil && !*p.AutoApprove {
		return nil
	}
	byID := index(devices)
	var out []string
	for _, h := range hosts {
		tagged := slices.ContainsFunc(byID[h.NodeID].Tags, func(t string) bool { return slices.Contains(p.HostTags, v1alpha1.Tag(t)) })
		if tagged && !h.Approved() {
			out = append(out, h.NodeID)
		}
	}
	return out
}

func index(devices []tailscale.Device) map[string]tailscale.Device {
	out := make(map[string]tailscale.Device, len(devices))
	for _, d := range devices {
		out[d.NodeID] = d
	}
	return out
}

// approveHosts lets the hosts in that Observe found waiting.
func (e *external) approveHosts(ctx context.Context, mg *v1alpha1.VIPService) error {
	name := string(mg.Spec.ForProvider.Name)
	for _, id := range e.approve {
		if err := e.api.ApproveHost(ctx, name, id); err != nil {
			return errors.Wrapf(err, "cannot approve device %q as a host", id)
		}
		e.record.Event(mg, event.Normal(reasonHostApproved, fmt.Sprintf("Approved device %s as a host of %s", id, name)))
		// The next observation would say the same, some seconds later.
		for i := range mg.Status.AtProvider.Hosts {
			if h := &mg.Status.AtProvider.Hosts[i]; h.NodeID == id {
				h.Approval = "approved:manual"
			}
		}
	}
	return nil
}

// transitions returns events for hosts that came or went online.
func transitions(before, after []v1alpha1.ServiceHost) []event.Event {
	was := map[string]bool{}
	for _, h := range before {
		was[h.NodeID] = h.Online
	}
	var out []event.Event
	for _, h := range after {
		online, known := was[h.NodeID]
		switch {
		case h.Online && !online:
			out = append(out, event.Normal(reasonHostOnline, "Device "+h.Name+" is online"))
		case !h.Online && known && online:
			out = append(out, event.Warning(reasonHostOffline, errors.Errorf("device %s went offline", h.Name)))
		}
	}
	return out
}
