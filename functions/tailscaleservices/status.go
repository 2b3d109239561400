// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Values of SelectedEndpoints.Status.
const (
	statusReady   = "Ready"
	statusPending = "Pending"

	statusNotAllowed = "NotAllowed"
)

// maxAddresses is the maximum number of addresses in status.vipService.
const maxAddresses = 8

// count returns the number of hosts with a property.
func count(hosts []tailnetv1alpha1.ServiceHost, match func(tailnetv1alpha1.ServiceHost) bool) int32 {
	n := int32(0)
	for _, h := range hosts {
		if match(h) {
			n++
		}
	}
	return n
}

// machines returns the desired number of machines that host the service.
func (s *service) machines() int32 {
	n := int32(0)
	for _, p := range s.sel.sets {
		if !s.isBarred(p) {
			n += machines(p)
		}
	}
	return n
}

// status returns the status of the TailscaleServices.
func (s *service) status() gatewayv1alpha1.TailscaleServicesStatus {
	total, healthy := s.machines(), count(s.hosts(), tailnetv1alpha1.ServiceHost.Serves)
	out := gatewayv1alpha1.TailscaleServicesStatus{
		TotalBackends:   ptr.To(total),
		HealthyBackends: ptr.To(healthy),
		VIPServiceStatus: &gatewayv1alpha1.ServiceVIPStatus{
			Created:             len(s.addresses()) > 0,
			ServiceName:         s.serviceName(),
			DNSName:             s.dnsName(),
			Addresses:           s.addresses(),
			BackendCount:        total,
			HealthyBackendCount: healthy,
		},
	}
	if vip := out.VIPServiceStatus; vip.Created {
		out.VIPService = &gatewayv1alpha1.VIPServiceStatus{
			Addresses:       vip.Addresses[:min(len(vip.Addresses), maxAddresses)],
			DNSName:         vip.DNSName,
			BackendCount:    total,
			HealthyBackends: healthy,
		}
	}
	if s.shared() && s.current != nil {
		out.ClusterCount = s.current.Status.AtProvider.ConsumerCount
	}
	for _, c := range s.remotes() {
		out.RemoteClusters = append(out.RemoteClusters, remoteCluster(c))
	}
	out.DiscoveredServices = discoveredServices(s)
	out.LoadBalancingStatus = s.loadBalancing()
	for _, p := range s.sel.sets {
		out.SelectedEndpoints = append(out.SelectedEndpoints, selectedStatus(s, p))
	}
	return out
}

// remoteCluster returns the status of another cluster.
func remoteCluster(c tailnetv1alpha1.ServiceConsumer) gatewayv1alpha1.RemoteCluster {
	out := gatewayv1alpha1.RemoteCluster{
		ClusterID:   c.ClusterID,
		ServiceName: c.ServiceName,
		Addresses:   c.Addresses,
		DNSName:     c.DNSName,
		Online:      c.Online,
	}
	if c.Health != nil {
		out.Health = &gatewayv1alpha1.RemoteHealth{Ready: c.Health.Ready, Total: c.Health.Total, Score: c.Health.Score}
	}
	return out
}

// selectedStatus returns the status of selected endpoints.
func selectedStatus(s *service, p tailnetv1alpha1.ProxySet) gatewayv1alpha1.SelectedEndpoints {
	healthy := count(s.hosts(), func(h tailnetv1alpha1.ServiceHost) bool { return h.Serves() && hosts(p, h) })
	out := gatewayv1alpha1.SelectedEndpoints{
		Name:      p.Spec.Endpoints,
		Namespace: s.owner.Namespace,
		Machines:  hostNames(s, p),
		Status:    statusPending,
		HealthStatus: gatewayv1alpha1.SelectedHealth{
			HealthyMachines:      healthy,
			UnhealthyMachines:    max(machines(p)-healthy, 0),
			UnhealthyRemotePaths: unhealthyPaths(s, p),
		},
	}
	switch {
	case s.isBarred(p):
		out.Status, out.HealthStatus.UnhealthyMachines = statusNotAllowed, 0
	case healthy > 0:
		out.Status = statusReady
	}
	return out
}

// maxMachines and maxName are the maximum number of machines of selected endpoints in the status, and
// the maximum length of their names.
const maxMachines, maxName = 128, 253

// hostNames returns the names in the tailnet of the machines of endpoints that host the service. They
// change only together with the counts, because each change of the status is a write.
func hostNames(s *service, p tailnetv1alpha1.ProxySet) []string {
	var out []string
	for _, h := range s.hosts() {
		if name := names.InTailnet(h.Name); name != "" && len(name) <= maxName && h.Serves() && hosts(p, h) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxMachines)]
}

// hosts reports whether a host is a machine of endpoints. The provider reports this by the
// machine's node ID. Otherwise the host's name decides: the first label is the name that the
// machine requested, with -1, -2 and so on if that was in use. Machines request a name with a hash.
func hosts(p tailnetv1alpha1.ProxySet, h tailnetv1alpha1.ServiceHost) bool {
	if h.Endpoints != "" {
		return h.Endpoints == p.Spec.Endpoints
	}
	label := names.InTailnet(h.Name)
	for _, m := range p.Spec.Sets {
		wanted := make([]string, m.Replicas)
		for i := range m.Replicas {
			wanted[i] = names.Host(p.GetNamespace(), names.Machine(m.Name, i))
		}
		base, _ := cutNumber(label)
		for _, n := range []string{label, base} {
			if slices.Contains(wanted, n) || slices.Contains(wanted, unique.ReplaceAllString(n, "")) {
				return true
			}
		}
	}
	return false
}

// unique matches what names.UniqueHost appends.
var unique = regexp.MustCompile(`-[0-9a-f]{8}$`)

// cutNumber returns a name without a suffix -1, -2 and so on, and whether it had one.
func cutNumber(name string) (string, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return "", false
	}
	return name[:i], true
}
