// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// An Endpoint is the state of an endpoint of one target, for display.
type Endpoint struct {
	// Name of the backend, of the endpoint of a TailscaleEndpoints, or of the ServiceAttachment for
	// another cluster.
	Name    string `json:"name"`
	Address string `json:"address"`
	Port    int32  `json:"port"`

	Status      Status `json:"status"`
	IsHealthy   bool   `json:"isHealthy"`
	IsLocal     bool   `json:"isLocal"`
	HealthScore int    `json:"healthScore"`

	// Reason for an unhealthy status, or for an unknown one that no probe will change.
	Reason string `json:"reason,omitempty"`

	SuccessiveSuccesses int `json:"successiveSuccesses"`
	SuccessiveFailures  int `json:"successiveFailures"`

	// LastHealthCheck is absent before the first check.
	LastHealthCheck *time.Time `json:"lastHealthCheck,omitempty"`

	// ClusterID of the endpoint's cluster. Absent for this cluster.
	ClusterID string `json:"clusterID,omitempty"`

	Zone     string      `json:"zone,omitempty"`
	Weight   uint32      `json:"weight"`
	Protocol ir.Protocol `json:"protocol"`
}

// A Target is the state of a target and its endpoints, for display.
type Target struct {
	Key     ir.TargetKey `json:"-"`
	Cluster string       `json:"cluster"`

	// Tier that answers: Local, Remote, or LastResort if no endpoint is healthy.
	Tier Tier `json:"tier"`

	Endpoints []Endpoint `json:"endpoints"`
}

// A Tier is a group of a target's endpoints.
type Tier string

// Tiers.
const (
	TierLocal      Tier = "Local"
	TierRemote     Tier = "Remote"
	TierLastResort Tier = "LastResort"
)

// Target returns the state of a target, and false if it is not probed.
func (p *Prober) Target(k ir.TargetKey) (Target, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[k]
	if t == nil {
		return Target{}, false
	}
	return p.show(k, t), true
}

// Targets returns the state of the probed targets that are wanted, sorted. Others cost nothing. Nil
// wants all.
func (p *Prober) Targets(wanted func(k ir.TargetKey) bool) []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []Target{}
	for k, t := range p.targets {
		if wanted == nil || wanted(k) {
			out = append(out, p.show(k, t))
		}
	}
	slices.SortFunc(out, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// reasonUnprobed is the reason of endpoints without probes.
var reasonUnprobed = fmt.Sprintf("is not probed, because its namespace has more than %d endpoints with health checks", limits.NamespaceProbes)

func (p *Prober) show(k ir.TargetKey, t *target) Target {
	out := Target{Key: k, Cluster: k.ClusterName(), Endpoints: make([]Endpoint, 0, len(t.endpoints))}
	var local, remote bool // Whether there is a healthy one that requests may use.
	localOnly := t.placed.LocalOnly && !t.wanted.Drains && slices.ContainsFunc(t.wanted.Candidates, func(c ir.Candidate) bool { return !c.Remote })
	for i, e := range t.endpoints {
		c, r := t.wanted.Candidates[i], t.state(i)
		n := Endpoint{
			Name: c.Source, Address: c.Address.Host, Port: c.Address.Port,
			Status: r.Status, IsHealthy: r.Status != Unhealthy, IsLocal: !c.Remote, HealthScore: r.Score,
			SuccessiveSuccesses: r.History.successes, SuccessiveFailures: r.History.failures,
			ClusterID: c.Cluster, Zone: c.Zone, Weight: c.Weight, Protocol: k.Protocol,
		}
		switch {
		case r.Status == Unhealthy:
			n.Reason = r.Reason
		case e == nil:
			n.Reason = reasonUnprobed
		}
		if e != nil && !e.last.IsZero() {
			at := e.last.UTC()
			n.LastHealthCheck = &at
		}
		out.Endpoints = append(out.Endpoints, n)
		local = local || n.IsHealthy && !c.Remote
		remote = remote || n.IsHealthy && c.Remote && !localOnly
	}
	// While the target drains, local endpoints come last if there is a healthy one elsewhere.
	moved := t.placed.Local
	if t.wanted.Drains {
		moved = remote
	}
	switch {
	case local && !moved:
		out.Tier = TierLocal
	case local || remote:
		out.Tier = TierRemote
	default:
		out.Tier = TierLastResort
	}
	return out
}

// each calls fn for each probed endpoint, under the lock. It returns the delay of the most overdue
// probe.
func (p *Prober) each(fn func(*endpoint)) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.checks {
		fn(e)
	}
	return p.due.overdue(time.Now())
}

// ServeHTTP returns all targets as JSON.
func (p *Prober) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(p.Targets(nil)); err != nil {
		// The client has closed the connection.
		p.opts.Log.Debug("Cannot answer", "error", err)
	}
}
