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
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// conditions returns the conditions of the object.
func (s *service) conditions() []compose.Condition {
	out := []compose.Condition{accepted(s), endpointsSelected(s), vipServiceReady(s), advertised(s), approved(s)}
	if s.routing() != nil || s.facts.conditions[meta.TypeRouted] {
		out = append(out, primaryChosen(s))
	}
	if s.portsHealth() != nil || s.facts.conditions[meta.TypePortsHealthy] {
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
			Type: meta.TypeAccepted, Status: compose.False, Reason: s.portsErr.reason,
			Message: fmt.Sprintf("%s cannot be served: %v", s.serviceName(), s.portsErr),
		}
	}
	c := compose.Condition{
		Type: meta.TypeAccepted, Status: compose.True, Reason: meta.ReasonAccepted,
		Message: "Every port of the service has a backend",
	}
	if i := slices.IndexFunc(s.ports, func(a assignment) bool { return a.alone }); i >= 0 {
		c.Message += fmt.Sprintf("; how requests are spread is for the Gateways whose routes name the object: proxies hand port tcp:%d to backend %s alone", s.ports[i].port, s.ports[i].backend.Name)
	} else if !s.balances() {
		c.Message += unbalanced(s)
	}
	return c
}

// balances reports whether proxies balance the backends of a port.
func (s *service) balances() bool {
	return slices.ContainsFunc(s.ports, func(a assignment) bool { return len(a.shares) > 0 })
}

// unbalanced returns what balances requests instead of a strategy that has no effect, because each
// port has one backend. It is empty without a strategy.
func unbalanced(s *service) string {
	lb := s.spec.LoadBalancing
	switch {
	case lb == nil || lb.Strategy == "" || lb.Strategy == gatewayv1alpha1.StrategyRoundRobin:
		return ""
	case strategy(s.spec) == gatewayv1alpha1.StrategyRoundRobin:
		return "; how requests are spread is for the Gateway's routes to say, and not for spec.loadBalancing.strategy"
	}
	return fmt.Sprintf("; spec.loadBalancing.strategy %s has no effect, because no port has several backends: Kubernetes balances the pods of one", lb.Strategy)
}

// endpointsSelected returns the condition EndpointsSelected.
func endpointsSelected(s *service) compose.Condition {
	c := compose.Condition{Type: meta.TypeEndpointsSelected, Status: compose.False}
	names := make([]string, len(s.sel.sets))
	for i, p := range s.sel.sets {
		names[i] = p.Spec.Endpoints
	}
	switch {
	case s.sel.err != nil:
		c.Reason, c.Message = meta.ReasonInvalidSelector, "spec.selector: "+s.sel.err.Error()
	case s.severalTailnets():
		c.Reason = meta.ReasonMultipleTailnets
		c.Message = fmt.Sprintf("The selected TailscaleEndpoints %s are of the tailnets %s; select those of one",
			compose.List(names...), compose.List(s.sel.tailnets(s.spec.EndpointTemplate)...))
	case s.tailnet() != "" && !s.verdict.Accepted:
		c.Reason, c.Message = s.verdict.Reason, s.verdict.Message
	case s.sel.provision && !s.sel.provisioned(s.owner):
		c.Reason = meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Making TailscaleEndpoints %s from spec.endpointTemplate", provisionedName(s.owner))
	case len(names) == 0:
		c.Reason = meta.ReasonNoEndpointsMatch
		c.Message = fmt.Sprintf("No TailscaleEndpoints of namespace %q match spec.selector; label one, or set spec.endpointTemplate", s.owner.Namespace)
	case s.sel.provision:
		c.Status, c.Reason = compose.True, meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Made TailscaleEndpoints %s from spec.endpointTemplate", provisionedName(s.owner))
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
	case s.moving():
		c.Message = fmt.Sprintf("Deleting %s in tailnet %q to make it in %q", s.serviceName(), s.observedTailnet(), s.tailnet())
	case s.vip == nil && (!s.verdict.Accepted || s.sel.err != nil || s.severalTailnets()):
		c.Message = fmt.Sprintf("%s is made once endpoints are selected", s.serviceName())
	case s.vip == nil && s.refusedSpec():
		c.Message = fmt.Sprintf("%s is made once what the spec asks for can be served; see the condition %s", s.serviceName(), meta.TypeAccepted)
	case s.created():
		c.Status, c.Reason = compose.True, meta.ReasonVIPServiceCreated
		c.Message = fmt.Sprintf("%s has the address %s", s.serviceName(), s.addresses()[0])
	default:
		// The message is the same from the start: the VIPService that this run creates must not
		// change it in the next run.
		c.Message = fmt.Sprintf("Waiting for %s to get an address", s.serviceName())
		if len(s.addresses()) > 0 && s.dnsName() == "" {
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
	total, healthy := s.machines(), count(s.hosts(), tailnetv1alpha1.ServiceHost.Serves)
	switch {
	case s.portsErr != nil:
		c.Reason, c.Message = s.portsErr.reason, fmt.Sprintf("%s is not served as the spec says; see the condition %s", s.serviceName(), meta.TypeAccepted)
	case s.noneAllows() && !slices.ContainsFunc(s.sel.sets, s.hostsBefore):
		c.Reason = meta.ReasonPortsNotAllowed
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints allows all ports of %s; see the condition %s", s.serviceName(), meta.TypePortsAllowed)
	case healthy > 0:
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines host %s; status.healthyBackends counts them", s.serviceName())
	case s.routeOnly() && s.shared() && s.answers():
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines of other clusters host %s; this cluster has none that could", s.serviceName())
	case count(s.hosts(), isPending) > 0:
		c.Reason = meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("No machine that offers %s is approved", s.serviceName())
	case len(s.sel.sets) > 0 && !slices.ContainsFunc(s.sel.sets, hasIngress):
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints has ingress proxies to host %s; set spec.proxy.connectionType of one to ingress or bidirectional", s.serviceName())
	case total == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("There is no machine to host %s", s.serviceName())
	case len(s.addresses()) == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("Machines host %s once it has an address", s.serviceName())
	case s.certificateProblem() != nil:
		p := s.certificateProblem()
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
	p := s.routing()
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
	p := s.portsHealth()
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
	for _, h := range s.hosts() {
		if isPending(h) {
			pending = append(pending, h.Name)
		}
	}
	switch {
	case s.approvalForbidden() != nil:
		p := s.approvalForbidden()
		c.Status, c.Reason, c.Message = compose.False, p.Reason, p.Message
	case len(pending) > 0:
		c.Status, c.Reason = compose.False, meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("%s wait for an approval to host %s: approve them in Tailscale's admin console, set spec.vipService.autoApprove, or add an auto-approver to the policy file",
			compose.List(pending...), s.serviceName())
	case count(s.hosts(), isOffered) > 0:
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
	if s.current == nil {
		return c
	}
	p := s.current.GetCondition(meta.TypeConflict)
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
