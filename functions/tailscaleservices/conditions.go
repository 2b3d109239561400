// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// conditions returns the conditions of the object.
func (s *service) conditions() []compose.Condition {
	out := []compose.Condition{accepted(s), endpointsSelected(s), vipServiceReady(s), advertised(s), approved(s)}
	if s.presence.Routing() != nil || s.facts.conditions[meta.TypeRouted] {
		out = append(out, primaryChosen(s))
	}
	if s.presence.PortsHealth() != nil || s.facts.conditions[meta.TypePortsHealthy] {
		out = append(out, portsHealthy(s))
	}
	if c := portsAllowed(s); c != nil {
		out = append(out, *c)
	}
	if s.shared() {
		out = append(out, conflict(s))
	}
	if s.discovers() {
		out = append(out, discoverySuccessful(s))
	}
	return out
}

// accepted returns the condition Accepted.
func accepted(s *service) compose.Condition {
	if s.portsErr != nil {
		return compose.Condition{
			Type: meta.TypeAccepted, Status: compose.False, Reason: s.portsErr.Reason,
			Message: fmt.Sprintf("%s cannot be served: %v", s.serviceName(), s.portsErr),
		}
	}
	c := compose.Condition{
		Type: meta.TypeAccepted, Status: compose.True, Reason: meta.ReasonAccepted,
		Message: "Every port of the service has a backend",
	}
	if i := slices.IndexFunc(s.ports, func(a ports.Assignment) bool { return a.Alone }); i >= 0 {
		c.Message += fmt.Sprintf("; how requests are spread is for the Gateways whose routes name the object: proxies hand port tcp:%d to backend %s alone", s.ports[i].Port, s.ports[i].Backend.Name)
	} else if !s.balances() {
		c.Message += unbalanced(s)
	}
	return c
}

// balances reports whether proxies balance the backends of a port.
func (s *service) balances() bool {
	return slices.ContainsFunc(s.ports, func(a ports.Assignment) bool { return len(a.Shares) > 0 })
}

// unbalanced returns what balances requests instead of a strategy that has no effect, because each
// port has one backend. It is empty without a strategy.
func unbalanced(s *service) string {
	lb := s.spec.LoadBalancing
	switch {
	case lb == nil || lb.Strategy == "" || lb.Strategy == gatewayv1alpha1.StrategyRoundRobin:
		return ""
	case ports.Strategy(s.spec) == gatewayv1alpha1.StrategyRoundRobin:
		return "; how requests are spread is for the Gateway's routes to say, and not for spec.loadBalancing.strategy"
	}
	return fmt.Sprintf("; spec.loadBalancing.strategy %s has no effect, because no port has several backends: Kubernetes balances the pods of one", lb.Strategy)
}

// endpointsSelected returns the condition EndpointsSelected.
func endpointsSelected(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeEndpointsSelected, Status: compose.False}
	names := make([]string, len(s.selection.Selected))
	for i, p := range s.selection.Selected {
		names[i] = p.Spec.Endpoints
	}
	switch {
	case s.selection.Err != nil:
		c.Reason, c.Message = meta.ReasonInvalidSelector, "spec.selector: "+s.selection.Err.Error()
	case s.selection.SeveralTailnets():
		c.Reason = meta.ReasonMultipleTailnets
		c.Message = fmt.Sprintf("The selected TailscaleEndpoints %s are of the tailnets %s; select those of one",
			compose.List(names...), compose.List(s.selection.Tailnets()...))
	case s.tailnet() != "" && !s.verdict.Accepted:
		c.Reason, c.Message = s.verdict.Reason, s.verdict.Message
	case s.selection.Provision && !s.selection.Provisioned():
		c.Reason = meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Making TailscaleEndpoints %s from spec.endpointTemplate", selection.TemplateName(s.owner))
	case len(names) == 0:
		c.Reason = meta.ReasonNoEndpointsMatch
		c.Message = fmt.Sprintf("No TailscaleEndpoints of namespace %q match spec.selector; label one, or set spec.endpointTemplate", s.owner.Namespace)
	case s.selection.Provision:
		c.Status, c.Reason = compose.True, meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Made TailscaleEndpoints %s from spec.endpointTemplate", selection.TemplateName(s.owner))
	default:
		c.Status, c.Reason = compose.True, meta.ReasonEndpointsSelected
		c.Message = "Selected TailscaleEndpoints " + compose.List(names...)
	}
	return c
}

// vipServiceReady returns the condition VIPServiceReady.
func vipServiceReady(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeVIPServiceReady, Status: compose.False, Reason: meta.ReasonVIPServiceCreating}
	switch {
	case s.presence.Moving:
		c.Message = fmt.Sprintf("Deleting %s in tailnet %q to make it in %q", s.serviceName(), presence.Tailnet(s.vip), s.tailnet())
	case s.vip == nil && (!s.verdict.Accepted || s.selection.Err != nil || s.selection.SeveralTailnets()):
		c.Message = fmt.Sprintf("%s is made once endpoints are selected", s.serviceName())
	case s.vip == nil && s.refusedSpec():
		c.Message = fmt.Sprintf("%s is made once what the spec asks for can be served; see the condition %s", s.serviceName(), meta.TypeAccepted)
	case s.presence.Created():
		c.Status, c.Reason = compose.True, meta.ReasonVIPServiceCreated
		c.Message = fmt.Sprintf("%s has the address %s", s.serviceName(), s.presence.Addresses()[0])
	default:
		// The message is the same from the start: the VIPService that this run creates must not
		// change it in the next run.
		c.Message = fmt.Sprintf("Waiting for %s to get an address", s.serviceName())
		if len(s.presence.Addresses()) > 0 && s.presence.DNSName() == "" {
			c.Message = fmt.Sprintf("Waiting for the DNS name of %s, which is known once the tailnet has a machine", s.serviceName())
		}
		if p := vipProblem(s.vip); p != nil {
			c.Reason, c.Message = p.Reason, ownField(p.Message)
		}
	}
	return c
}

// ownField returns a message of the provider with the name of this object's field: the user did
// not write the VIPService.
func ownField(message string) string {
	return strings.ReplaceAll(message, "set adoptionPolicy", "set spec.vipService.adoptionPolicy")
}

// refusals are the reasons for which the provider does not touch another owner's service.
var refusals = []xpv2.ConditionReason{meta.ReasonForeignService, meta.ReasonNameTaken, meta.ReasonSharedByOthers}

// vipProblem returns the provider's problem with a service. It returns nil if there is none, or if
// the provider has not tried yet.
func vipProblem(v *tailnetv1alpha1.VIPService) *xpv2.Condition {
	if v == nil {
		return nil
	}
	refused := v.GetCondition(xpv2.TypeReady)
	if refused.Status == corev1.ConditionFalse && slices.Contains(refusals, refused.Reason) {
		return &refused
	}
	c := v.GetCondition(xpv2.TypeSynced)
	if c.Status != corev1.ConditionFalse {
		return nil
	}
	c.Reason = meta.ReasonCannotReconcile
	return &c
}

// advertised returns the condition Advertised.
func advertised(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeAdvertised, Status: compose.False}
	total, healthy := s.machines(), presence.Count(s.presence.Hosts(), tailnetv1alpha1.ServiceHost.Serves)
	switch {
	case s.portsErr != nil:
		c.Reason, c.Message = s.portsErr.Reason, fmt.Sprintf("%s is not served as the spec says; see the condition %s", s.serviceName(), meta.TypeAccepted)
	case s.selection.NoneAllows() && !slices.ContainsFunc(s.selection.Selected, s.succession.HostsBefore):
		c.Reason = meta.ReasonPortsNotAllowed
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints allows all ports of %s; see the condition %s", s.serviceName(), meta.TypePortsAllowed)
	case healthy > 0:
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines host %s; status.healthyBackends counts them", s.serviceName())
	case s.routeOnly() && s.shared() && s.answers():
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines of other clusters host %s; this cluster has none that could", s.serviceName())
	case presence.Count(s.presence.Hosts(), isPending) > 0:
		c.Reason = meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("No machine that offers %s is approved", s.serviceName())
	case len(s.selection.Selected) > 0 && !slices.ContainsFunc(s.selection.Selected, selection.HasIngress):
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints has ingress proxies to host %s; set spec.proxy.connectionType of one to ingress or bidirectional", s.serviceName())
	case total == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("There is no machine to host %s", s.serviceName())
	case len(s.presence.Addresses()) == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("Machines host %s once it has an address", s.serviceName())
	case s.presence.CertificateProblem() != nil:
		p := s.presence.CertificateProblem()
		c.Reason, c.Message = p.Reason, p.Message
	default:
		c.Reason = meta.ReasonNoHealthyBackend
		c.Message = fmt.Sprintf("No machine offers %s: each does once it is in the tailnet, serves all ports, and its backends answer; check that %s exists and serves its port; status.agent of the Machines shows what is missing", s.serviceName(), backendNames(s))
	}
	return c
}

// primaryChosen returns the condition Routed, which the provider sets once hosts were accepted.
func primaryChosen(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeRouted, Reason: meta.ReasonNoHost, Message: fmt.Sprintf("No machine offers %s", s.serviceName())}
	p := s.presence.Routing()
	if p == nil {
		return c
	}
	c.Reason, c.Message = p.Reason, p.Message
	switch p.Status {
	case corev1.ConditionTrue:
		c.Status, c.Message = compose.True, fmt.Sprintf("Tailscale sends clients to a host of %s", s.serviceName())
	case corev1.ConditionFalse:
		c.Status = compose.False
	case corev1.ConditionUnknown:
	}
	return c
}

// portsHealthy returns the condition PortsHealthy, which the provider sets once clients did not reach
// a port.
func portsHealthy(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypePortsHealthy, Status: compose.True, Reason: meta.ReasonPortsHealthy, Message: fmt.Sprintf("A host serves all ports of %s", s.serviceName())}
	p := s.presence.PortsHealth()
	switch {
	case p == nil:
		return compose.Condition{Type: meta.TypePortsHealthy, Reason: meta.ReasonNoHost, Message: fmt.Sprintf("No machine offers %s", s.serviceName())}
	case p.Status == corev1.ConditionFalse:
		c.Status, c.Reason, c.Message = compose.False, p.Reason, p.Message
	}
	return c
}

// backendNames returns the backends by name, for a message.
func backendNames(s *service) string {
	seen := map[string]bool{}
	var names []string
	for _, b := range s.spec.Backends {
		n := "Service " + b.Name
		switch b.Kind {
		case gatewayv1alpha1.BackendKindExternal:
			n = "host " + b.Host
		case gatewayv1alpha1.BackendKindGateway:
			n = "TailscaleGateway " + b.Name
		case gatewayv1alpha1.BackendKindService:
		}
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	return compose.List(names...)
}

// isOffered reports whether a host that can be reached offers all ports of the service. A host that
// does not is an intermediate state of a few seconds, for which no condition changes: each change is two
// writes of the composite.
func isOffered(h tailnetv1alpha1.ServiceHost) bool { return h.Online && h.Configured }

// isPending reports whether a host waits for an approval.
func isPending(h tailnetv1alpha1.ServiceHost) bool { return h.Online && !h.Approved() }

// approved returns the condition Approved.
func approved(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeApproved}
	var pending []string
	for _, h := range s.presence.Hosts() {
		if isPending(h) {
			pending = append(pending, h.Name)
		}
	}
	switch {
	case s.presence.ApprovalForbidden() != nil:
		p := s.presence.ApprovalForbidden()
		c.Status, c.Reason, c.Message = compose.False, p.Reason, p.Message
	case len(pending) > 0:
		c.Status, c.Reason = compose.False, meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("%s wait for an approval to host %s: approve them in Tailscale's admin console, set spec.vipService.autoApprove, or add an auto-approver to the policy file",
			compose.List(pending...), s.serviceName())
	case presence.Count(s.presence.Hosts(), isOffered) > 0:
		c.Status, c.Reason = compose.True, meta.ReasonHostsApproved
		c.Message = fmt.Sprintf("All machines that offer %s are approved", s.serviceName())
	default:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("No machine offers %s", s.serviceName())
	}
	return c
}

// conflict returns the condition Conflict, which the provider reports about the clusters that
// share the service.
func conflict(s *service) compose.Condition {
	c := compose.Condition{
		Type:    meta.TypeConflict,
		Reason:  compose.ReasonWaiting,
		Message: fmt.Sprintf("Waiting for the provider to compare what the clusters want of %s", s.serviceName()),
	}
	if s.presence.Current == nil {
		return c
	}
	p := s.presence.Current.GetCondition(meta.TypeConflict)
	switch p.Status {
	case corev1.ConditionTrue:
		c.Status, c.Reason, c.Message = compose.True, p.Reason, p.Message
	case corev1.ConditionFalse:
		c.Status, c.Reason = compose.False, p.Reason
		c.Message = fmt.Sprintf("All clusters that share %s want the same of it", s.serviceName())
	case corev1.ConditionUnknown:
	}
	return c
}
