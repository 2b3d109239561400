// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// conditionTypes are the types of conditions that every run sets.
var conditionTypes = []xpv2.ConditionType{
	meta.TypeTailnetAccepted, meta.TypeMachinesReady, meta.TypeStatefulSetsReady,
}

// conditionTypes returns the types of the conditions that are set. It omits conditions of features
// that the spec does not use.
func (e *endpoints) conditionTypes(p *egressPlan) []xpv2.ConditionType {
	out := conditionTypes
	if len(p.proxied())+len(p.refused)+len(p.portless)+len(p.unplaced) > 0 {
		out = append(out[:len(out):len(out)], meta.TypeEgressReady)
	}
	if e.spec.AutoDiscovery != nil {
		out = append(out[:len(out):len(out)], meta.TypeDiscoverySuccessful)
	}
	return out
}

// allConditions returns the conditions. A condition of a feature that the spec no longer uses gets
// a message that says so, because Crossplane would keep the last message.
func (e *endpoints) allConditions(p *egressPlan) []compose.Condition {
	types := e.conditionTypes(p)
	out := []compose.Condition{accepted(e.verdict), e.machinesReady(), e.statefulSetsReady()}
	switch {
	case slices.Contains(types, meta.TypeEgressReady):
		out = append(out, e.egressReady(p))
	case e.conditions[meta.TypeEgressReady]:
		out = append(out, compose.Condition{Type: meta.TypeEgressReady, Reason: meta.ReasonNotRequested, Message: "There are no targets that need a proxy"})
	}
	if c := e.networkReady(); c != nil {
		out = append(out, *c)
	}
	switch {
	case slices.Contains(types, meta.TypeDiscoverySuccessful):
		out = append(out, e.discoverySuccessful())
	case e.conditions[meta.TypeDiscoverySuccessful]:
		out = append(out, compose.Condition{Type: meta.TypeDiscoverySuccessful, Reason: meta.ReasonNotRequested, Message: "spec.autoDiscovery is not set"})
	}
	return out
}

// accepted returns the condition TailnetAccepted.
func accepted(v compose.TailnetVerdict) compose.Condition {
	c := compose.Condition{Type: meta.TypeTailnetAccepted, Status: compose.False, Reason: v.Reason, Message: v.Message}
	if v.Accepted {
		c.Status = compose.True
	}
	return c
}

// machinesReady returns the condition MachinesReady. A failure of the provider comes first,
// because the user can fix it. The message does not count machines: each write of the composite
// counts against it in Crossplane's circuit breaker, and the status lists the machines anyway.
func (e *endpoints) machinesReady() compose.Condition {
	c := compose.Condition{Type: meta.TypeMachinesReady, Status: compose.False}
	if !e.composed {
		c.Reason, c.Message = meta.ReasonMachinesNotReady, "There are no machines while the tailnet is not accepted"
		return c
	}
	waiting := false
	for _, g := range e.wantedGroups() {
		for _, i := range g.wanted() {
			name, m := names.Machine(g.set, i), g.machines[i]
			if m != nil && m.Failed {
				c.Reason = meta.ReasonCannotPrepareMachine
				c.Message = fmt.Sprintf("Machine %s: %s", name, m.Message)
				return c
			}
			// A machine that this run creates counts in the next run, see podsReady.
			waiting = waiting || m != nil && !m.Ready
		}
		// Pods become ready once their machines have joined. Reported together, both
		// cost one write of the composite.
		waiting = waiting || !g.podsReady() || len(g.machines) == 0 && g.count > 0
	}
	if name, m := e.stuck(); m != nil {
		c.Reason = meta.ReasonCannotDeleteMachine
		c.Message = fmt.Sprintf("Machine %s is not wanted any more: %s", name, m.Message)
		return c
	}
	if waiting {
		c.Reason = meta.ReasonMachinesNotReady
		c.Message = "Waiting for machines to join the tailnet; status.endpointStatus says what each waits for"
		return c
	}
	c.Status, c.Reason = compose.True, meta.ReasonAllMachinesReady
	c.Message = "All machines are in the tailnet"
	return c
}

// networkReady returns the condition NetworkReady, or nil as long as no machine has reported a
// problem.
func (e *endpoints) networkReady() *compose.Condition {
	for _, g := range e.wantedGroups() {
		for _, i := range g.wanted() {
			m := g.machines[i]
			if m == nil || m.Network == nil {
				continue
			}
			return &compose.Condition{
				Type: meta.TypeNetworkReady, Status: compose.False,
				Reason:  xpv2.ConditionReason(m.Network.Reason),
				Message: fmt.Sprintf("Machine %s: %s", names.Machine(g.set, i), m.Network.Message),
			}
		}
	}
	switch {
	case !e.conditions[meta.TypeNetworkReady]:
		return nil
	case !e.kernel():
		return &compose.Condition{Type: meta.TypeNetworkReady, Reason: meta.ReasonNotRequested, Message: "The proxies do not use Kernel networking"}
	}
	return &compose.Condition{Type: meta.TypeNetworkReady, Status: compose.True, Reason: meta.ReasonNetworkUsable, Message: "No machine reports a problem of Kernel networking"}
}

// stuck returns the first machine that should be removed and cannot be, and its name. It returns
// nil if there is none.
func (e *endpoints) stuck() (string, *tailnetv1alpha1.MachineSummary) {
	for _, g := range e.groups() {
		for _, i := range g.surplus() {
			if m := g.machines[i]; m.Failed && g.seen() {
				return names.Machine(g.set, i), m
			}
		}
	}
	return "", nil
}

// statefulSetsReady returns the condition StatefulSetsReady. Its message does not count
// replicas: status.statefulSetRefs does.
func (e *endpoints) statefulSetsReady() compose.Condition {
	c := compose.Condition{Type: meta.TypeStatefulSetsReady, Status: compose.False, Reason: meta.ReasonReplicasNotReady}
	if !e.composed {
		c.Message = "There are no proxies while the tailnet is not accepted"
		return c
	}
	for _, g := range e.groups() {
		if m := g.pods().Message; m != "" && g.seen() {
			c.Reason, c.Message = meta.ReasonCannotApplyStatefulSet, m
			return c
		}
	}
	waiting := false
	var sets, rolling []string
	for _, g := range e.wantedGroups() {
		sets = append(sets, g.set)
		switch {
		case g.podsReady():
		case g.machineSet != nil && g.machineSet.Status.StatefulSet != nil && g.readyReplicas() >= g.count:
			rolling = append(rolling, g.set)
		default:
			waiting = true
		}
	}
	switch {
	case waiting:
		c.Message = "Waiting for replicas; status.statefulSetRefs counts them"
	case len(rolling) > 0:
		c.Message = fmt.Sprintf("StatefulSet %s is being rolled out", compose.List(rolling...))
	default:
		c.Status, c.Reason = compose.True, meta.ReasonAllReplicasReady
		c.Message = fmt.Sprintf("All replicas of StatefulSet %s are ready", compose.List(sets...))
	}
	return c
}
