// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
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

	// Reason for an unhealthy status.
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

// Targets returns the state of all probed targets, sorted.
func (p *Prober) Targets() []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Target, 0, len(p.targets))
	for k, t := range p.targets {
		out = append(out, p.show(k, t))
	}
	slices.SortFunc(out, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

func (p *Prober) show(k ir.TargetKey, t *target) Target {
	out := Target{Key: k, Cluster: k.ClusterName(), Tier: TierLastResort, Endpoints: []Endpoint{}}
	kept := t.placed.LocalOnly && slices.ContainsFunc(t.of.Candidates, func(c ir.Candidate) bool { return !c.Remote })
	for i, c := range t.checks {
		of, e := t.of.Candidates[i], p.checks[c]
		n := Endpoint{
			Name: of.Source, Address: of.Address.Host, Port: of.Address.Port,
			Status: e.Status, IsHealthy: e.Status != Unhealthy, IsLocal: !of.Remote, HealthScore: e.Score,
			SuccessiveSuccesses: e.History.successes, SuccessiveFailures: e.History.failures,
			ClusterID: of.Cluster, Zone: of.Zone, Weight: of.Weight, Protocol: k.Protocol,
		}
		if e.Status == Unhealthy {
			n.Reason = e.Reason
		}
		if !e.last.IsZero() {
			at := e.last.UTC()
			n.LastHealthCheck = &at
		}
		out.Endpoints = append(out.Endpoints, n)
		switch {
		case !n.IsHealthy || out.Tier == TierLocal || of.Remote && kept:
		case of.Remote || t.placed.Local:
			out.Tier = TierRemote
		default:
			out.Tier = TierLocal
		}
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
	if err := json.NewEncoder(w).Encode(p.Targets()); err != nil {
		// The client has closed the connection.
		p.opts.Log.Debug("Cannot answer", "error", err)
	}
}
