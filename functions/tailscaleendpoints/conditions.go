// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"cmp"
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// alwaysTypes are the types of conditions that every run sets.
var alwaysTypes = []xpv2.ConditionType{
	meta.TypeTailnetAccepted, meta.TypeMachinesReady, meta.TypeStatefulSetsReady,
}

// conditionTypes returns the types of the conditions that are set. It omits conditions of features
// that the spec does not use.
func conditionTypes(p *endpointsPlan) []xpv2.ConditionType {
	out := alwaysTypes
	if p.forwarding.IsReported() {
		out = append(out[:len(out):len(out)], meta.TypeEgressReady)
	}
	if p.search.Wanted() {
		out = append(out[:len(out):len(out)], meta.TypeDiscoverySuccessful)
	}
	if warning(p) != "" {
		out = append(out[:len(out):len(out)], meta.TypeTailscaledTested)
	}
	return out
}

// conditions returns the conditions. A condition of a feature that the spec no longer uses gets
// a message that says so, because Crossplane would keep the last message.
func conditions(p *endpointsPlan) []compose.Condition {
	types := conditionTypes(p)
	out := []compose.Condition{accepted(p.verdict), machinesReady(p), statefulSetsReady(p)}
	switch {
	case slices.Contains(types, meta.TypeEgressReady):
		out = append(out, egressReady(p))
	case p.conditions[meta.TypeEgressReady]:
		out = append(out, compose.Condition{Type: meta.TypeEgressReady, Reason: meta.ReasonNotRequested, Message: "There are no targets that need a proxy"})
	}
	if c := networkReady(p); c != nil {
		out = append(out, *c)
	}
	switch {
	case slices.Contains(types, meta.TypeDiscoverySuccessful):
		out = append(out, p.search.Condition())
	case p.conditions[meta.TypeDiscoverySuccessful]:
		out = append(out, compose.Condition{Type: meta.TypeDiscoverySuccessful, Reason: meta.ReasonNotRequested, Message: "spec.autoDiscovery is not set"})
	}
	switch {
	case slices.Contains(types, meta.TypeTailscaledTested):
		out = append(out, compose.Condition{Type: meta.TypeTailscaledTested, Status: compose.False, Reason: meta.ReasonVersionUntested, Message: warning(p)})
	case p.conditions[meta.TypeTailscaledTested]:
		out = append(out, compose.Condition{Type: meta.TypeTailscaledTested, Status: compose.True, Reason: meta.ReasonVersionTested, Message: "All machines run a tested version of tailscaled"})
	}
	return out
}

// egressReady returns the condition EgressReady.
func egressReady(p *endpointsPlan) compose.Condition {
	if !p.composed {
		return compose.Condition{Type: meta.TypeEgressReady, Status: compose.False, Reason: meta.ReasonReplicasNotReady, Message: "There are no proxies while the tailnet is not accepted"}
	}
	return p.forwarding.Condition()
}

// warning returns the warning of the first machine that has one, without its name: all machines run
// the same image, and each change of the message is a write of the composite.
func warning(p *endpointsPlan) string {
	for _, g := range p.proxies.WantedGroups() {
		for _, i := range g.Wanted() {
			if m := g.Machines[i]; m != nil && m.Warning != "" {
				return m.Warning
			}
		}
	}
	return ""
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
func machinesReady(p *endpointsPlan) compose.Condition {
	c := compose.Condition{Type: meta.TypeMachinesReady, Status: compose.False}
	if !p.composed {
		c.Reason, c.Message = meta.ReasonMachinesNotReady, "There are no machines while the tailnet is not accepted"
		return c
	}
	waiting, loginError := false, ""
	for _, g := range p.proxies.WantedGroups() {
		for _, i := range g.Wanted() {
			name, m := names.Machine(g.Set, i), g.Machines[i]
			if m != nil && m.Failed {
				c.Reason = meta.ReasonCannotPrepareMachine
				c.Message = fmt.Sprintf("Machine %s: %s", name, m.Message)
				return c
			}
			// A machine that this run creates counts in the next run, see proxies.Group.PodsReady.
			waiting = waiting || m != nil && !m.Ready
			if m != nil && !m.Ready {
				loginError = cmp.Or(loginError, m.LoginError)
			}
		}
		// Pods become ready once their machines have joined. Reported together, both
		// cost one write of the composite.
		waiting = waiting || !g.PodsReady() || len(g.Machines) == 0 && g.Count > 0
	}
	if name, m := stuck(p); m != nil {
		c.Reason = meta.ReasonCannotDeleteMachine
		c.Message = fmt.Sprintf("Machine %s is not wanted any more: %s", name, m.Message)
		return c
	}
	switch {
	case loginError != "":
		c.Reason = meta.ReasonLoginFailed
		c.Message = "Machines cannot log in to the tailnet, and keep trying; status.endpointStatus says what each waits for; a node reports: " + loginError
		return c
	case waiting:
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
func networkReady(p *endpointsPlan) *compose.Condition {
	for _, g := range p.proxies.WantedGroups() {
		for _, i := range g.Wanted() {
			m := g.Machines[i]
			if m == nil || m.Network == nil {
				continue
			}
			return &compose.Condition{
				Type: meta.TypeNetworkReady, Status: compose.False,
				Reason:  xpv2.ConditionReason(m.Network.Reason),
				Message: fmt.Sprintf("Machine %s: %s", names.Machine(g.Set, i), m.Network.Message),
			}
		}
	}
	switch {
	case !p.conditions[meta.TypeNetworkReady]:
		return nil
	case !proxies.Kernel(p.spec):
		return &compose.Condition{Type: meta.TypeNetworkReady, Reason: meta.ReasonNotRequested, Message: "The proxies do not use Kernel networking"}
	}
	return &compose.Condition{Type: meta.TypeNetworkReady, Status: compose.True, Reason: meta.ReasonNetworkUsable, Message: "No machine reports a problem of Kernel networking"}
}

// stuck returns the first machine that should be removed and cannot be, and its name. It returns
// nil if there is none.
func stuck(p *endpointsPlan) (string, *tailnetv1alpha1.MachineSummary) {
	for _, g := range p.proxies.Groups() {
		for _, i := range g.Surplus() {
			if m := g.Machines[i]; m.Failed && g.Seen() {
				return names.Machine(g.Set, i), m
			}
		}
	}
	return "", nil
}

// statefulSetsReady returns the condition StatefulSetsReady. Its message does not count
// replicas: status.statefulSetRefs does.
func statefulSetsReady(p *endpointsPlan) compose.Condition {
	c := compose.Condition{Type: meta.TypeStatefulSetsReady, Status: compose.False, Reason: meta.ReasonReplicasNotReady}
	if !p.composed {
		c.Message = "There are no proxies while the tailnet is not accepted"
		return c
	}
	for _, g := range p.proxies.Groups() {
		if m := g.Pods().Message; m != "" && g.Seen() {
			c.Reason, c.Message = meta.ReasonCannotApplyStatefulSet, m
			return c
		}
	}
	waiting := false
	var sets, rolling []string
	for _, g := range p.proxies.WantedGroups() {
		sets = append(sets, g.Set)
		switch {
		case g.PodsReady():
		case g.MachineSet != nil && g.MachineSet.Status.StatefulSet != nil && g.ReadyReplicas() >= g.Count:
			rolling = append(rolling, g.Set)
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
