// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Compose returns a Machine of a set.
func Compose(set *v1alpha1.MachineSet, member v1alpha1.MachineSetMember) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name:       member.Name,
		Namespace:  set.GetNamespace(),
		Finalizers: []string{meta.FinalizerManaged},
	}}
	apply(set, member, m)
	return m
}

// apply sets the fields of a Machine that the set determines. It copies those labels of the set
// that are the project's.
func apply(set *v1alpha1.MachineSet, member v1alpha1.MachineSetMember, m *v1alpha1.Machine) {
	labels := maps.Clone(m.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	for _, k := range []string{meta.LabelTailnet, meta.LabelEndpoints, meta.LabelDirection} {
		if v, ok := set.GetLabels()[k]; ok {
			labels[k] = v
		}
	}
	labels[meta.LabelMachineSet] = set.GetName()
	labels[meta.LabelBackup] = "true"
	m.SetLabels(labels)
	m.Spec.ProviderConfigReference = ptr.To(set.Spec.ProviderConfigReference)
	m.Spec.ForProvider = v1alpha1.MachineParameters{
		Hostname:     hostname(set, member, m),
		Tags:         set.Spec.Tags,
		AcceptRoutes: set.Spec.AcceptRoutes,
		// They follow nodes, not the set.
		StaticEndpoints: m.Spec.ForProvider.StaticEndpoints,
	}
}

// hostname returns the hostname of a Machine. No other set in any cluster has it: the tailnet would
// distinguish equal hostnames by -1, -2 and so on, but only in the names of the devices. A machine
// that is older than unique hostnames keeps its hostname. So does a machine with a device, because
// a set that was restored from a backup has another UID.
func hostname(set *v1alpha1.MachineSet, member v1alpha1.MachineSetMember, m *v1alpha1.Machine) string {
	existing := m.Spec.ForProvider.Hostname
	if existing == member.Hostname || meta.NodeIDOf(m) != "" && names.IsUniqueHost(existing, member.Hostname) {
		return existing
	}
	return names.UniqueHost(member.Hostname, string(set.GetUID()), member.Name)
}

// surplus returns the Machines, sorted by name, that a set owns but no longer has.
func surplus(set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine) []*v1alpha1.Machine {
	wanted := map[string]bool{}
	for _, m := range set.Spec.Machines {
		wanted[m.Name] = true
	}
	var out []*v1alpha1.Machine
	for _, name := range slices.Sorted(maps.Keys(owned)) {
		if !wanted[name] {
			out = append(out, owned[name])
		}
	}
	return out
}

// Summarize returns the status of a set for the Machines that it owns, by name, and its pods.
// problems has, by name, Machines that belong to somebody else or cannot be deleted.
func Summarize(set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine, problems map[string]string, pods Pods) v1alpha1.MachineSetStatus {
	s := v1alpha1.MachineSetStatus{ObservedGeneration: set.GetGeneration(), StatefulSet: pods.summary()}
	for _, member := range set.Spec.Machines {
		m := summary(member.Name, owned[member.Name], problems[member.Name])
		if m.Ready {
			s.ReadyMachines++
		}
		s.Machines = append(s.Machines, m)
	}
	for _, m := range surplus(set, owned) {
		sum := summary(m.GetName(), m, problems[m.GetName()])
		// An earlier failure to prepare it does not matter any more.
		sum.Failed = sum.Failed && (m.GetDeletionTimestamp() != nil || problems[m.GetName()] != "")
		s.Machines = append(s.Machines, sum)
	}
	slices.SortFunc(s.Machines, func(a, b v1alpha1.MachineSummary) int { return cmp.Compare(a.Name, b.Name) })
	s.Egress = egressPorts(set, owned)
	return s
}

// egressPorts returns the egress ports of all machines. It lists them by port, because a set has up
// to 128 machines with up to 2048 ports each: listed by machine they would not fit into an object.
// It includes the ports of surplus machines, which must not be reused yet, but ignores their state.
func egressPorts(set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine) []v1alpha1.MachineSetEgressPort {
	type key struct {
		port     int32
		protocol corev1.Protocol
		target   string
	}
	at := map[key]int{}
	var out []v1alpha1.MachineSetEgressPort
	// Messages about ready ports only count if no machine reports a problem.
	remarks := map[key]string{}
	messages := 0
	for _, name := range slices.Sorted(maps.Keys(owned)) {
		a := owned[name].Status.Agent
		if a == nil {
			continue
		}
		wanted := slices.ContainsFunc(set.Spec.Machines, func(m v1alpha1.MachineSetMember) bool { return m.Name == name })
		for _, p := range a.Egress {
			k := key{p.Port, p.Protocol, p.Target}
			i, ok := at[k]
			if !ok {
				i = len(out)
				at[k] = i
				out = append(out, v1alpha1.MachineSetEgressPort{Port: p.Port, Protocol: p.Protocol, Target: p.Target})
			}
			switch {
			case !wanted:
			case p.Ready:
				out[i].ReadyMachines++
				remarks[k] = cmp.Or(remarks[k], p.Message)
			case out[i].Message == "" && p.Message != "":
				out[i].Message = p.Message
				messages++
			}
		}
	}
	for i, p := range out {
		if remark := remarks[key{p.Port, p.Protocol, p.Target}]; p.Message == "" && remark != "" {
			out[i].Message = remark
			messages++
		}
	}
	for i := range out {
		out[i].Message = egress.Cut(out[i].Message, messages)
	}
	slices.SortFunc(out, func(a, b v1alpha1.MachineSetEgressPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Target, b.Target))
	})
	return out
}

// summary returns the summary of a Machine, which may be nil, with the set's problem with it. An
// empty problem means none.
func summary(name string, m *v1alpha1.Machine, failed string) v1alpha1.MachineSummary {
	// Messages may be long, and there may be many.
	out := v1alpha1.MachineSummary{Name: name, Failed: failed != "", Message: egress.Cut(cmp.Or(failed, problem(m)), 1)}
	if m == nil {
		return out
	}
	o := m.Status.AtProvider
	out.Ready = out.Message == ""
	out.Failed = out.Failed || m.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionFalse
	out.NodeID, out.DNSName, out.Hostname, out.Addresses, out.Tags = o.NodeID, o.Name, o.Hostname, o.Addresses, o.Tags
	out.Online, out.LastSeen = ptr.Deref(o.Online, false), o.LastSeen
	if c := m.GetCondition(meta.TypeTailscaledTested); c.Status == corev1.ConditionFalse {
		out.Warning = egress.Cut(c.Message, 1)
	}
	if a := m.Status.Agent; a != nil {
		out.PodIP, out.EgressConfig, out.Network = a.PodIP, a.EgressConfig, a.Network
		out.Ports = servedPorts(a)
		if !out.Ready {
			out.LoginError = tailscale.OneLine(a.LoginError)
		}
	}
	return out
}

// maxPorts is the maximum number of a machine's ports in the status, which lists up to 128 machines.
const maxPorts = 32

// servedPorts returns the lowest ports at which a machine's pod hosts services, and that lead into the
// tailnet. Each is listed once, however many services have it, and whether or not its backend or its
// target is healthy: so the list seldom changes, and each change is a write of the composite.
func servedPorts(a *v1alpha1.MachineAgentStatus) []string {
	type port struct {
		number   int
		protocol string
	}
	var ports []port
	all := false
	for _, s := range a.Services {
		for _, p := range s.Ports {
			all = all || p == string(v1alpha1.ServicePortAll)
			if n, ok := v1alpha1.ServicePort(p).Number(); ok {
				ports = append(ports, port{int(n), "tcp"})
			}
		}
	}
	for _, p := range a.Egress {
		ports = append(ports, port{int(p.Port), strings.ToLower(string(p.Protocol))})
	}
	slices.SortFunc(ports, func(a, b port) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.protocol, b.protocol))
	})
	var out []string
	if all {
		out = append(out, string(v1alpha1.ServicePortAll))
	}
	for _, p := range slices.Compact(ports) {
		out = append(out, fmt.Sprintf("%s:%d", p.protocol, p.number))
	}
	return out[:min(len(out), maxPorts)]
}

// problem describes, for the user, why a machine is not in the tailnet. It is empty if it is.
func problem(m *v1alpha1.Machine) string {
	switch {
	case m != nil && m.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionFalse:
		return m.GetCondition(xpv2.TypeSynced).Message
	case m != nil && m.GetDeletionTimestamp() != nil:
		return "The machine is being deleted"
	case m != nil && !ptr.Deref(m.Status.AtProvider.Online, false) && m.Status.Agent != nil && m.Status.Agent.Network != nil:
		return m.Status.Agent.Network.Message
	case m == nil || m.Status.AtProvider.NodeID == "":
		return "Waiting for the pod to log in to the tailnet with the auth key that the provider issues" + loginError(m)
	case slices.Contains([]xpv2.ConditionReason{meta.ReasonTailnetLocked, meta.ReasonLoginFailed}, m.GetCondition(xpv2.TypeReady).Reason):
		return m.GetCondition(xpv2.TypeReady).Message
	case !ptr.Deref(m.Status.AtProvider.Authorized, true):
		return "Waiting for an admin of the tailnet to authorize the device"
	case !ptr.Deref(m.Status.AtProvider.Online, true):
		return "The device is offline; see whether its pod runs and reaches the control server" + loginError(m)
	case m.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue:
		return "Waiting for the device to be ready"
	}
	return ""
}

// loginError returns what the agent of a Machine, which may be nil, reports about the login, to end a
// message, or "".
func loginError(m *v1alpha1.Machine) string {
	if m == nil || m.Status.Agent == nil {
		return ""
	}
	return tailscale.NodeReport(m.Status.Agent.LoginError)
}

// summary returns the summary of the pods. It returns nil if the set has no pods and wants none.
func (p Pods) summary() *v1alpha1.StatefulSetSummary {
	s := p.StatefulSet
	if s == nil && p.Problem == "" {
		return nil
	}
	out := &v1alpha1.StatefulSetSummary{Message: p.Problem}
	if s == nil {
		return out
	}
	out.Replicas = ptr.Deref(s.Spec.Replicas, 1)
	out.ReadyReplicas, out.UpdatedReplicas = s.Status.ReadyReplicas, s.Status.UpdatedReplicas
	out.Observed = observed(s)
	if t := s.GetCreationTimestamp(); !t.IsZero() {
		out.CreatedAt = &t
	}
	return out
}

// problemOf returns the problem of a status with its pods, or an empty string.
func problemOf(s v1alpha1.MachineSetStatus) string {
	if s.StatefulSet == nil {
		return ""
	}
	return s.StatefulSet.Message
}

// settled reports whether a set is expected to stay unchanged: each machine is ready, its agent has
// reported, and its pod is ready and has the latest template.
func settled(s v1alpha1.MachineSetStatus) bool {
	if p := s.StatefulSet; p != nil && (!p.Observed || p.ReadyReplicas != p.Replicas || p.UpdatedReplicas != p.Replicas) {
		return false
	}
	return !slices.ContainsFunc(s.Machines, func(m v1alpha1.MachineSummary) bool { return !m.Ready || m.PodIP == "" })
}
