// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A presence is the service in the tailnet, as the provider reports it.
type presence struct {
	// current is nil if the service does not exist, or is in another tailnet than it should be.
	current *tailnetv1alpha1.VIPService

	// sharing reports whether other clusters may also define the service.
	sharing bool
}

// present returns the presence of a service that should be in a tailnet.
func present(f facts, tailnet string) presence {
	p := presence{sharing: f.shared()}
	if t := f.observedTailnet(); t == "" || t == tailnet {
		p.current = f.vip
	}
	return p
}

// addresses returns the addresses of the service. There are none at first.
func (p presence) addresses() []string {
	if p.current == nil {
		return nil
	}
	return p.current.Status.AtProvider.Addresses
}

// tailnetPorts returns the service's ports in the tailnet. There are none until they are known.
func (p presence) tailnetPorts() []string {
	if p.current == nil {
		return nil
	}
	return p.current.Status.AtProvider.Ports
}

// ownAddresses returns the addresses of this cluster's separate service, in addition to the shared
// one. There are none at first.
func (p presence) ownAddresses() []string {
	if p.current == nil || p.current.Status.AtProvider.OwnServiceName == "" {
		return nil
	}
	return p.current.Status.AtProvider.OwnAddresses
}

// hosts returns the hosts of this cluster that offer the service. Those of other clusters, which
// may have the same names, are in their records.
func (p presence) hosts() []tailnetv1alpha1.ServiceHost {
	return slices.DeleteFunc(slices.Clone(p.allHosts()), func(h tailnetv1alpha1.ServiceHost) bool {
		return p.sharing && !h.Local
	})
}

// allHosts returns the hosts that offer the service, of all clusters.
func (p presence) allHosts() []tailnetv1alpha1.ServiceHost {
	if p.current == nil {
		return nil
	}
	return p.current.Status.AtProvider.Hosts
}

// remotes returns the other clusters that share the service, by cluster ID. It omits the record of
// this cluster, which has the name of its separate service.
func (p presence) remotes() []tailnetv1alpha1.ServiceConsumer {
	if !p.sharing || p.current == nil {
		return nil
	}
	o := p.current.Status.AtProvider
	return slices.DeleteFunc(slices.Clone(o.Consumers), func(c tailnetv1alpha1.ServiceConsumer) bool {
		return c.ServiceName == o.OwnServiceName
	})
}

// dnsName returns the DNS name of the service. It is empty until the tailnet's name is known.
func (p presence) dnsName() string {
	if p.current == nil {
		return ""
	}
	return p.current.Status.AtProvider.DNSName
}

// created reports whether the service has its desired state in the tailnet, with an address and a
// DNS name.
func (p presence) created() bool {
	return p.current != nil && len(p.addresses()) > 0 && p.dnsName() != "" &&
		p.current.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue &&
		p.current.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse
}

// isUnrouted reports whether control has made no host of the service primary, or has not done so yet:
// clients have no route to it. A state that the provider does not know does not count.
func (p presence) isUnrouted() bool {
	c := p.routing()
	return c != nil && (c.Status == corev1.ConditionFalse || c.Reason == meta.ReasonWaitingForPrimary)
}

// routing returns the provider's condition Routed. It returns nil if there is none.
func (p presence) routing() *xpv2.Condition {
	if p.current == nil {
		return nil
	}
	c := p.current.GetCondition(meta.TypeRouted)
	if c.Reason == "" {
		return nil
	}
	return &c
}

// portsHealth returns the provider's condition PortsHealthy. It returns nil if there is none.
func (p presence) portsHealth() *xpv2.Condition {
	if p.current == nil {
		return nil
	}
	c := p.current.GetCondition(meta.TypePortsHealthy)
	if c.Reason == "" {
		return nil
	}
	return &c
}

// certificateProblem returns what the machines report about the certificate. It returns nil if
// they report no problem.
func (p presence) certificateProblem() *xpv2.Condition {
	if p.current == nil {
		return nil
	}
	c := p.current.GetCondition(meta.TypeCertificateReady)
	if c.Status != corev1.ConditionFalse {
		return nil
	}
	return &c
}

// approvalForbidden returns the provider's condition if Tailscale does not let it approve hosts.
// It returns nil otherwise.
func (p presence) approvalForbidden() *xpv2.Condition {
	if p.current == nil {
		return nil
	}
	c := p.current.GetCondition(meta.TypeApproved)
	if c.Status != corev1.ConditionFalse || c.Reason != meta.ReasonApprovalForbidden {
		return nil
	}
	return &c
}
