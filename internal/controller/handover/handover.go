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

// A report is what another machine reports about a service.
type report struct {
	machine *v1alpha1.Machine
	v1alpha1.HostedService
}

// released returns the services that a stopping machine need not keep advertised, and those of them
// that have another host, sorted.
func (w world) released(m *v1alpha1.Machine) (services, hosted []string) {
	final, coming := w.final(m), false
	// Machines may report thousands of services: each is looked at once.
	reports, hosts := map[string][]report{}, map[string][]v1alpha1.ServiceHost{}
	for i := range w.machines {
		x := &w.machines[i]
		if !other(m, x) {
			continue
		}
		if x.Status.Agent == nil {
			coming = coming || w.set != nil && lists(w.set, x) && x.GetLabels()[meta.LabelMachineSet] == w.set.GetName()
			continue
		}
		for _, s := range x.Status.Agent.Services {
			reports[s.Name] = append(reports[s.Name], report{machine: x, HostedService: s})
		}
	}
	for i := range w.services {
		if v := &w.services[i]; ptr.Equal(v.Spec.ProviderConfigReference, m.Spec.ProviderConfigReference) {
			name := string(v.Spec.ForProvider.Name)
			hosts[name] = append(hosts[name], v.Status.AtProvider.Hosts...)
		}
	}
	for _, s := range m.Status.Agent.Services {
		// Another machine may become a host: it reports the service, or has not reported yet.
		awaited, elsewhere := coming || len(reports[s.Name]) > 0, served(m, reports[s.Name], hosts[s.Name])
		if !s.Advertised || final || !awaited || elsewhere {
			services = append(services, s.Name)
		}
		if s.Advertised && elsewhere {
			hosted = append(hosted, s.Name)
		}
	}
	slices.Sort(services)
	slices.Sort(hosted)
	return services, hosted
}

// final reports whether no pod will follow the machine's.
func (w world) final(m *v1alpha1.Machine) bool {
	if w.orphaned || w.ending || m.GetDeletionTimestamp() != nil {
		return true
	}
	return w.set != nil && (w.set.GetDeletionTimestamp() != nil || !lists(w.set, m))
}

// served reports whether another host of a service is advertised and accepted, and stays.
func served(m *v1alpha1.Machine, reports []report, hosts []v1alpha1.ServiceHost) bool {
	for _, r := range reports {
		if serves(r, hosts) && outlasts(r.machine, m) {
			return true
		}
	}
	return slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool { return !h.Local && h.Serves() })
}

// serves reports whether a machine advertises a service and is accepted. Its agent knows first. One
// whose tailscaled does not report what control accepted is accepted if the API says so.
func serves(r report, hosts []v1alpha1.ServiceHost) bool {
	if online := r.machine.Status.AtProvider.Online; !r.Advertised || online != nil && !*online {
		return false
	}
	return r.Accepted || r.machine.Status.Agent.AcceptanceUnknown && slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool {
		return h.NodeID == meta.NodeIDOf(r.machine) && h.Serves()
	})
}

// outlasts reports whether a machine stays longer than a stopping one. Among machines that stop
// together, the first one hands over to the others, and the last one waits for a new pod.
func outlasts(x, m *v1alpha1.Machine) bool {
	start := x.Status.Agent.StoppingSince
	if start == nil {
		return true
	}
	return cmp.Or(start.Compare(m.Status.Agent.StoppingSince.Time), cmp.Compare(x.GetName(), m.GetName())) > 0
}

// other reports whether a machine is another one of the same tailnet that stays.
func other(m, x *v1alpha1.Machine) bool {
	return client.ObjectKeyFromObject(x) != client.ObjectKeyFromObject(m) && x.GetDeletionTimestamp() == nil &&
		ptr.Equal(x.Spec.ProviderConfigReference, m.Spec.ProviderConfigReference)
}

func lists(set *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	return slices.ContainsFunc(set.Spec.Machines, func(x v1alpha1.MachineSetMember) bool { return x.Name == m.GetName() })
}
