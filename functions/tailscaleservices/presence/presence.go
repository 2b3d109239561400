// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package presence reads the presence of a Tailscale Service in its tailnet, as the provider reports it.
package presence

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A Presence is the service in the tailnet, as the provider reports it.
type Presence struct {
	// Current is nil if the service does not exist, or is in another tailnet than it should be.
	Current *tailnetv1alpha1.VIPService

	// Moving means that the service is in another tailnet than it should be. It must be deleted there
	// before it is created here.
	Moving bool

	// Sharing reports whether other clusters may also define the service.
	Sharing bool

	// hosts are the hosts of this cluster that offer the service.
	hosts []tailnetv1alpha1.ServiceHost
}

// New returns the presence of an observed service that should be in a tailnet.
func New(observed *tailnetv1alpha1.VIPService, tailnet string, sharing bool) Presence {
	t := Tailnet(observed)
	p := Presence{Sharing: sharing, Moving: t != "" && t != tailnet}
	if !p.Moving {
		p.Current = observed
	}
	p.hosts = slices.DeleteFunc(slices.Clone(p.AllHosts()), func(h tailnetv1alpha1.ServiceHost) bool {
		return sharing && !h.Local
	})
	return p
}

// Tailnet returns the tailnet that an observed service is in. It is empty if there is no service yet.
func Tailnet(observed *tailnetv1alpha1.VIPService) string {
	if observed == nil || observed.Spec.ProviderConfigReference == nil {
		return ""
	}
	return observed.Spec.ProviderConfigReference.Name
}

// Addresses returns the addresses of the service. There are none at first.
func (p Presence) Addresses() []string {
	if p.Current == nil {
		return nil
	}
	return p.Current.Status.AtProvider.Addresses
}

// TailnetPorts returns the service's ports in the tailnet. There are none until they are known.
func (p Presence) TailnetPorts() []string {
	if p.Current == nil {
		return nil
	}
	return p.Current.Status.AtProvider.Ports
}

// OwnAddresses returns the addresses of this cluster's separate service, in addition to the shared
// one. There are none at first.
func (p Presence) OwnAddresses() []string {
	if p.Current == nil || p.Current.Status.AtProvider.OwnServiceName == "" {
		return nil
	}
	return p.Current.Status.AtProvider.OwnAddresses
}

// Hosts returns the hosts of this cluster that offer the service. Those of other clusters, which
// may have the same names, are in their records.
func (p Presence) Hosts() []tailnetv1alpha1.ServiceHost { return p.hosts }

// AllHosts returns the hosts that offer the service, of all clusters.
func (p Presence) AllHosts() []tailnetv1alpha1.ServiceHost {
	if p.Current == nil {
		return nil
	}
	return p.Current.Status.AtProvider.Hosts
}

// Remotes returns the other clusters that share the service, by cluster ID. It omits the record of
// this cluster, which has the name of its separate service.
func (p Presence) Remotes() []tailnetv1alpha1.ServiceConsumer {
	if !p.Sharing || p.Current == nil {
		return nil
	}
	o := p.Current.Status.AtProvider
	return slices.DeleteFunc(slices.Clone(o.Consumers), func(c tailnetv1alpha1.ServiceConsumer) bool {
		return c.ServiceName == o.OwnServiceName
	})
}

// ClusterSet returns the set of clusters that share the service, according to this cluster's record.
// It is empty if there is none.
func (p Presence) ClusterSet() string {
	if !p.Sharing || p.Current == nil {
		return ""
	}
	o := p.Current.Status.AtProvider
	i := slices.IndexFunc(o.Consumers, func(c tailnetv1alpha1.ServiceConsumer) bool { return c.ServiceName == o.OwnServiceName })
	if i < 0 {
		return ""
	}
	return o.Consumers[i].ClusterSet
}

// DNSName returns the DNS name of the service. It is empty until the tailnet's name is known.
func (p Presence) DNSName() string {
	if p.Current == nil {
		return ""
	}
	return p.Current.Status.AtProvider.DNSName
}

// Created reports whether the service has its desired state in the tailnet, with an address and a
// DNS name.
func (p Presence) Created() bool {
	return p.Current != nil && len(p.Addresses()) > 0 && p.DNSName() != "" &&
		p.Current.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue &&
		p.Current.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse
}

// IsUnrouted reports whether control has made no host of the service primary, or has not done so yet:
// clients have no route to it. A state that the provider does not know does not count.
func (p Presence) IsUnrouted() bool {
	c := p.Routing()
	return c != nil && (c.Status == corev1.ConditionFalse || c.Reason == meta.ReasonWaitingForPrimary)
}

// Routing returns the provider's condition Routed. It returns nil if there is none.
func (p Presence) Routing() *xpv2.Condition {
	if p.Current == nil {
		return nil
	}
	c := p.Current.GetCondition(meta.TypeRouted)
	if c.Reason == "" {
		return nil
	}
	return &c
}

// PortsHealth returns the provider's condition PortsHealthy. It returns nil if there is none.
func (p Presence) PortsHealth() *xpv2.Condition {
	if p.Current == nil {
		return nil
	}
	c := p.Current.GetCondition(meta.TypePortsHealthy)
	if c.Reason == "" {
		return nil
	}
	return &c
}

// CertificateProblem returns what the machines report about the certificate. It returns nil if
// they report no problem.
func (p Presence) CertificateProblem() *xpv2.Condition {
	if p.Current == nil {
		return nil
	}
	c := p.Current.GetCondition(meta.TypeCertificateReady)
	if c.Status != corev1.ConditionFalse {
		return nil
	}
	return &c
}

// ApprovalForbidden returns the provider's condition if Tailscale does not let it approve hosts.
// It returns nil otherwise.
func (p Presence) ApprovalForbidden() *xpv2.Condition {
	if p.Current == nil {
		return nil
	}
	c := p.Current.GetCondition(meta.TypeApproved)
	if c.Status != corev1.ConditionFalse || c.Reason != meta.ReasonApprovalForbidden {
		return nil
	}
	return &c
}
