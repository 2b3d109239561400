// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Resource names of children. That of a ServiceAttachment for ingress ends in the
// name of its endpoints, that of one for egress in its own. One for ingress is of the
// service, or of this cluster's own beside a shared one.
const (
	nameVIPService   = "vipservice"
	nameEndpoints    = "endpoints"
	nameDiscovery    = "discovery"
	prefixAttachment = "attachment-"
	prefixOwn        = "own-"
	prefixRemote     = "remote-"
)

// suffixOwn ends the names of attachments of this cluster's own service. Its dash has
// them end in a hash: no other child, of any service, has such a name.
const suffixOwn = "own-service"

// A service is what is wanted of a TailscaleServices, and what was seen.
type service struct {
	owner compose.Owner
	xr    *gatewayv1alpha1.TailscaleServices

	// vip that was observed. Nil when there is none.
	vip *tailnetv1alpha1.VIPService

	// endpoints from the template that were observed. Nil when there are none.
	endpoints *gatewayv1alpha1.TailscaleEndpoints

	// discovery that was observed. Nil when there is none.
	discovery *tailnetv1alpha1.Discovery

	// attachments that were observed, by resource name.
	attachments map[string]*tailnetv1alpha1.ServiceAttachment

	// gateways that are backends, by name. One that is not there is not among them.
	gateways map[string]*gatewayv1alpha1.TailscaleGateway

	sel selection

	// staying are endpoints that serve the service until a selected one hosts it.
	staying []tailnetv1alpha1.ProxySet

	// keepTemplate reports that the endpoints of the template stay though others are
	// selected.
	keepTemplate bool

	// health of what Gateways reach through the service. Nil unless it is reported.
	health *tailnetv1alpha1.HealthReportSpec

	// tailnetTags are the tags that the tailnet puts on every machine.
	tailnetTags []tailnetv1alpha1.Tag

	// step reports that there is no TailscaleServices: another composite's pipeline has
	// an input like one.
	step bool

	verdict compose.TailnetVerdict

	// unfilled is why what the spec leaves out could not be filled in.
	unfilled *specError

	ports    []assignment
	portsErr *specError
}

func (s *service) observe(r *compose.Run) error {
	vip := &tailnetv1alpha1.VIPService{}
	ok, err := r.Observed(nameVIPService, vip)
	if err != nil {
		return err
	}
	if ok {
		s.vip = vip
	}
	e := &gatewayv1alpha1.TailscaleEndpoints{}
	if ok, err = r.Observed(nameEndpoints, e); err != nil {
		return err
	}
	if ok {
		s.endpoints = e
	}
	d := &tailnetv1alpha1.Discovery{}
	if ok, err = r.Observed(nameDiscovery, d); err != nil {
		return err
	}
	if ok {
		s.discovery = d
	}
	s.attachments = map[string]*tailnetv1alpha1.ServiceAttachment{}
	for _, name := range r.ObservedNames() {
		if !slices.ContainsFunc([]string{prefixAttachment, prefixOwn, prefixRemote}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		a := &tailnetv1alpha1.ServiceAttachment{}
		if _, err := r.Observed(name, a); err != nil {
			return err
		}
		s.attachments[name] = a
	}
	return nil
}

// observedTailnet is the tailnet that the Tailscale Service is in. Empty if there
// is none yet.
func (s *service) observedTailnet() string {
	if s.vip == nil || s.vip.Spec.ProviderConfigReference == nil {
		return ""
	}
	return s.vip.Spec.ProviderConfigReference.Name
}

// tailnet to have the service in: that of the selected endpoints. While they are
// of several tailnets, or there are none, the service stays where it is, for its
// address is not to be lost. Empty if there is nothing to say it.
func (s *service) tailnet() string {
	if t := s.sel.tailnets(s.xr.Spec.EndpointTemplate); len(t) == 1 {
		return t[0]
	}
	return s.observedTailnet()
}

func (s *service) judge(v compose.TailnetVerdict, t *tailnetv1alpha1.ClusterProviderConfig) {
	if t != nil {
		s.tailnetTags = t.Spec.Tags
	}
	s.verdict = v
}

// asks judges what the spec asks of the tailnet by the namespace's grant.
func (s *service) asks(g *allow.Grant) []*allow.ViolationError {
	v := s.xr.Spec.VIPService
	name := "spec.vipService.name"
	if v.Name == "" {
		name = "metadata.name"
	}
	out := []*allow.ViolationError{
		g.Kind("spec.vipService", tailnetv1alpha1.VIPServiceKind),
		g.Service(name, s.serviceName()),
		allow.Tags(g, "spec.vipService.tags", v.Tags),
		allow.Tags(g, "spec.vipService.recordTags", v.RecordTags),
	}
	if s.discovers() {
		out = append(out, g.Kind("spec.serviceDiscovery", tailnetv1alpha1.DiscoveryKind))
	}
	if t := s.xr.Spec.EndpointTemplate; s.sel.provision && t != nil {
		out = append(out, allow.Tags(g, "spec.endpointTemplate.tags", t.Tags))
	}
	return out
}

// severalTailnets reports that the selected endpoints are of more than one.
func (s *service) severalTailnets() bool {
	return len(s.sel.tailnets(s.xr.Spec.EndpointTemplate)) > 1
}

// refused reports that the namespace may not use the tailnet. Nothing is composed
// then. A tailnet that is gone, or does not say who may use it, does not refuse:
// what runs is not harmed.
func (s *service) refused() bool {
	return s.verdict.Reason == meta.ReasonNamespaceNotAllowed
}

// moving reports that the service is in another tailnet than it is to be in. It
// must be deleted there before it is made here.
func (s *service) moving() bool {
	t := s.observedTailnet()
	return t != "" && t != s.tailnet()
}

// serviceName in the tailnet.
func (s *service) serviceName() string {
	if n := s.xr.Spec.VIPService.Name; n != "" {
		return string(n)
	}
	return "svc:" + s.owner.Name
}

// addresses of the service. Empty until it has some.
func (s *service) addresses() []string {
	if s.vip == nil || s.moving() {
		return nil
	}
	return s.vip.Status.AtProvider.Addresses
}

// tailnetPorts are those that the tailnet has of the service. Empty until that is known.
func (s *service) tailnetPorts() []string {
	if s.vip == nil || s.moving() {
		return nil
	}
	return s.vip.Status.AtProvider.Ports
}

// ownAddresses are those of this cluster's own service, beside the shared one. Empty
// until it has some.
func (s *service) ownAddresses() []string {
	if s.vip == nil || s.moving() || s.vip.Status.AtProvider.OwnServiceName == "" {
		return nil
	}
	return s.vip.Status.AtProvider.OwnAddresses
}

// hosts of this cluster that offer the service. Those of other clusters, which
// may have the same names, are in their records.
func (s *service) hosts() []tailnetv1alpha1.ServiceHost {
	return slices.DeleteFunc(slices.Clone(s.allHosts()), func(h tailnetv1alpha1.ServiceHost) bool {
		return s.shared() && !h.Local
	})
}

// allHosts that offer the service, of whichever cluster.
func (s *service) allHosts() []tailnetv1alpha1.ServiceHost {
	if s.vip == nil || s.moving() {
		return nil
	}
	return s.vip.Status.AtProvider.Hosts
}

// shared reports whether other clusters may define the service, too.
func (s *service) shared() bool {
	return s.xr.Spec.Sharing == gatewayv1alpha1.SharingShared
}

// remotes are the other clusters that share the service, by cluster ID. This
// cluster is the one whose record has the name of our own service.
func (s *service) remotes() []tailnetv1alpha1.ServiceConsumer {
	if !s.shared() || s.vip == nil || s.moving() {
		return nil
	}
	o := s.vip.Status.AtProvider
	return slices.DeleteFunc(slices.Clone(o.Consumers), func(c tailnetv1alpha1.ServiceConsumer) bool {
		return c.ServiceName == o.OwnServiceName
	})
}

// dnsName of the service. Empty until the tailnet's name is known.
func (s *service) dnsName() string {
	if s.vip == nil || s.moving() {
		return ""
	}
	return s.vip.Status.AtProvider.DNSName
}

// vipReady reports whether the service is in the tailnet, where it can be found by
// address and by name, and as it is wanted.
func (s *service) vipReady() bool {
	return s.vip != nil && len(s.addresses()) > 0 && s.dnsName() != "" && s.told() &&
		s.vip.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue &&
		s.vip.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse
}

// told reports whether the status has the service's name. No condition changes for it
// before that: who waits for Ready reads the name next, and all conditions that the
// service changes are one write.
func (s *service) told() bool {
	return s.step || s.xr.Status.VIPServiceStatus != nil && s.xr.Status.VIPServiceStatus.DNSName != ""
}

// answers reports whether a request to the service is answered: a machine is approved as a
// host and advertises it. The service is ready no sooner. Machines of other clusters count
// where this cluster has none to host it, see routeOnly. A service that no cluster is to
// host, for it is a backend of routes alone, lacks nothing.
func (s *service) answers() bool {
	if s.routeOnly() {
		return !s.shared() || count(s.allHosts(), isHealthy) > 0
	}
	return count(s.hosts(), isHealthy) > 0
}

// routeOnly reports whether this cluster is to host the service nowhere: none of the
// selected endpoints has ingress proxies. Gateways route to its backends, and to other
// clusters that share it.
func (s *service) routeOnly() bool {
	return len(s.sel.sets) > 0 && !slices.ContainsFunc(s.sel.sets, hasIngress) &&
		(!s.sel.provision || s.xr.Spec.EndpointTemplate.Proxy.ConnectionType == gatewayv1alpha1.ConnectionTypeEgress)
}

// problem reports that there is something for the user to fix, whatever the
// children say of themselves.
func (s *service) problem() bool {
	return s.sel.err != nil || s.portsErr != nil || !s.verdict.Accepted || s.severalTailnets() || s.moving() ||
		len(s.sel.sets) == 0
}
