// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
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

// machines returns the desired number of machines that host the service.
func (s *service) machines() int32 {
	n := int32(0)
	for _, p := range s.selection.Selected {
		if !s.succession.IsBarred(p) {
			n += selection.Machines(p)
		}
	}
	return n
}

// status returns the status of the TailscaleServices.
func (s *service) status() gatewayv1alpha1.TailscaleServicesStatus {
	total, healthy := s.machines(), presence.Count(s.presence.Hosts(), tailnetv1alpha1.ServiceHost.Serves)
	out := gatewayv1alpha1.TailscaleServicesStatus{
		TotalBackends:   ptr.To(total),
		HealthyBackends: ptr.To(healthy),
		VIPServiceStatus: &gatewayv1alpha1.ServiceVIPStatus{
			Created:             len(s.presence.Addresses()) > 0,
			ServiceName:         s.serviceName(),
			DNSName:             s.presence.DNSName(),
			Addresses:           s.presence.Addresses(),
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
	if s.shared() && s.presence.Current != nil {
		out.ClusterSet, out.ClusterCount = s.presence.ClusterSet(), s.presence.Current.Status.AtProvider.ConsumerCount
	}
	for _, c := range s.presence.Remotes() {
		out.RemoteClusters = append(out.RemoteClusters, remoteCluster(c))
	}
	out.DiscoveredServices = discoveredServices(s)
	out.LoadBalancingStatus, out.Routes = s.loadBalancing(), s.routes()
	for _, p := range s.selection.Selected {
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
		Draining:    c.Draining,
		Online:      c.Online,
	}
	if c.Health != nil {
		out.Health = &gatewayv1alpha1.RemoteHealth{Ready: c.Health.Ready, Total: c.Health.Total, Score: c.Health.Score}
	}
	return out
}

// selectedStatus returns the status of selected endpoints.
func selectedStatus(s *service, p tailnetv1alpha1.ProxySet) gatewayv1alpha1.SelectedEndpoints {
	healthy := presence.Count(s.presence.Hosts(), func(h tailnetv1alpha1.ServiceHost) bool { return h.Serves() && presence.IsMachine(p, h) })
	out := gatewayv1alpha1.SelectedEndpoints{
		Name:      p.Spec.Endpoints,
		Namespace: s.owner.Namespace,
		Machines:  hostNames(s, p),
		Status:    statusPending,
		HealthStatus: gatewayv1alpha1.SelectedHealth{
			HealthyMachines:      healthy,
			UnhealthyMachines:    max(selection.Machines(p)-healthy, 0),
			UnhealthyRemotePaths: unhealthyPaths(s, p),
		},
	}
	switch {
	case s.succession.IsBarred(p):
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
	for _, h := range s.presence.Hosts() {
		if name := names.InTailnet(h.Name); name != "" && len(name) <= maxName && h.Serves() && presence.IsMachine(p, h) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxMachines)]
}
