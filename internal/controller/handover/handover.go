// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A world is what is known about the hosts of a namespace's services.
type world struct {
	// set is the MachineSet of the stopping machine. Nil if there is none.
	set *v1alpha1.MachineSet

	// orphaned reports that the machine's set is gone, and ending that its namespace is being deleted.
	orphaned bool
	ending   bool

	machines []v1alpha1.Machine
	services []v1alpha1.VIPService
}

// released returns the services that a stopping machine need not keep advertised, sorted.
func (w world) released(m *v1alpha1.Machine) []string {
	final := w.final(m)
	out := []string{}
	for _, s := range m.Status.Agent.Services {
		if !s.Advertised || final || w.served(m, s.Name) || !w.awaited(m, s.Name) {
			out = append(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}

// final reports whether no pod will follow the machine's.
func (w world) final(m *v1alpha1.Machine) bool {
	if w.orphaned || w.ending || m.GetDeletionTimestamp() != nil {
		return true
	}
	return w.set != nil && (w.set.GetDeletionTimestamp() != nil || !lists(w.set, m))
}

// served reports whether another host of a service is advertised and accepted, and stays.
func (w world) served(m *v1alpha1.Machine, service string) bool {
	hosts := w.hosts(m, service)
	for i := range w.machines {
		x := &w.machines[i]
		if other(m, x) && serves(x, service, hosts) && outlasts(x, m) {
			return true
		}
	}
	return slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool { return !h.Local && ready(h) })
}

// serves reports whether a machine advertises a service and is accepted. Its agent knows first. One
// whose tailscaled does not report what control accepted is accepted if the API says so.
func serves(x *v1alpha1.Machine, service string, hosts []v1alpha1.ServiceHost) bool {
	a := x.Status.Agent
	if a == nil || x.Status.AtProvider.Online != nil && !*x.Status.AtProvider.Online {
		return false
	}
	i := slices.IndexFunc(a.Services, func(s v1alpha1.HostedService) bool { return s.Name == service })
	if i < 0 || !a.Services[i].Advertised {
		return false
	}
	return a.Services[i].Accepted || a.AcceptanceUnknown && slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool {
		return h.NodeID == meta.NodeIDOf(x) && ready(h)
	})
}

// outlasts reports whether a machine stays longer than a stopping one. Among machines that stop
// together, the first one hands over to the others, and the last one waits for a new pod.
func outlasts(x, m *v1alpha1.Machine) bool {
	since := x.Status.Agent.StoppingSince
	if since == nil {
		return true
	}
	return cmp.Or(since.Compare(m.Status.Agent.StoppingSince.Time), cmp.Compare(x.GetName(), m.GetName())) > 0
}

// awaited reports whether another machine may become a host of a service: it reports the service, or
// belongs to the same set and has not reported yet.
func (w world) awaited(m *v1alpha1.Machine, service string) bool {
	return slices.ContainsFunc(w.machines, func(x v1alpha1.Machine) bool {
		if !other(m, &x) {
			return false
		}
		if x.Status.Agent == nil {
			return w.set != nil && lists(w.set, &x) && x.GetLabels()[meta.LabelMachineSet] == w.set.GetName()
		}
		return slices.ContainsFunc(x.Status.Agent.Services, func(s v1alpha1.HostedService) bool { return s.Name == service })
	})
}

// hosts returns the hosts that the API lists for a service in the tailnet of a machine.
func (w world) hosts(m *v1alpha1.Machine, service string) []v1alpha1.ServiceHost {
	var out []v1alpha1.ServiceHost
	for i := range w.services {
		v := &w.services[i]
		if string(v.Spec.ForProvider.Name) == service && ptr.Equal(v.Spec.ProviderConfigReference, m.Spec.ProviderConfigReference) {
			out = append(out, v.Status.AtProvider.Hosts...)
		}
	}
	return out
}

// ready reports whether the API says that a host serves.
func ready(h v1alpha1.ServiceHost) bool {
	return h.Online && h.Configured && tailscale.Host{Approval: h.Approval}.Approved()
}

// other reports whether a machine is another one of the same tailnet that stays.
func other(m, x *v1alpha1.Machine) bool {
	return client.ObjectKeyFromObject(x) != client.ObjectKeyFromObject(m) && x.GetDeletionTimestamp() == nil &&
		ptr.Equal(x.Spec.ProviderConfigReference, m.Spec.ProviderConfigReference)
}

func lists(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	return slices.ContainsFunc(set.Spec.Machines, func(x v1alpha1.MachineSetMember) bool { return x.Name == m.GetName() })
}
