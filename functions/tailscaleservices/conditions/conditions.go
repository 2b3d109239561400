// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditions says what the user should know of a TailscaleServices, from the results of the other
// packages.
package conditions

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
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Facts are what the conditions follow from.
type Facts struct {
	// Succession is which endpoints stay, and what it follows from: the selection, the presence and the
	// desired tailnet.
	succession.Succession

	// ServiceName is the name of the service in the tailnet.
	ServiceName string

	// Existing are the types of the object's conditions.
	Existing map[xpv2.ConditionType]bool

	// VIPService and Discovery are the observed ones. They are nil if there are none.
	VIPService *tailnetv1alpha1.VIPService
	Discovery  *tailnetv1alpha1.Discovery

	// Verdict reports whether the namespace may use the tailnet in the way of the spec.
	Verdict compose.TailnetVerdict

	// Ports are the ports of the service and their backends. PortsErr is the error in the spec, if
	// there is one, and RefusedSpec means that objects that appear later do not resolve it.
	Ports       []ports.Assignment
	PortsErr    *ports.SpecError
	RefusedSpec bool

	// StaysShared means that clusters share the service although the spec has sharing Exclusive.
	StaysShared bool

	// AsksDrain means that the user asks to hand the service to other clusters.
	AsksDrain bool

	// RouteOnly means that this cluster does not host the service, and Answers that a machine does.
	RouteOnly, Answers bool

	// Machines is the desired number of machines that host the service.
	Machines int32
}

// accepted returns the condition Accepted.
func accepted(f Facts) compose.Condition {
	if f.PortsErr != nil {
		return compose.Condition{
			Type: meta.TypeAccepted, Status: compose.False, Reason: f.PortsErr.Reason,
			Message: fmt.Sprintf("%s cannot be served: %v", f.ServiceName, f.PortsErr),
		}
	}
	if f.StaysShared {
		return compose.Condition{
			Type: meta.TypeAccepted, Status: compose.False, Reason: meta.ReasonSharedByOthers,
			Message: fmt.Sprintf("%s stays shared, because other clusters may depend on it: remove spec.sharing, or delete this object and create another", f.ServiceName),
		}
	}
	c := compose.Condition{
		Type: meta.TypeAccepted, Status: compose.True, Reason: meta.ReasonAccepted,
		Message: "Every port of the service has a backend",
	}
	if i := slices.IndexFunc(f.Ports, func(a ports.Assignment) bool { return a.Alone }); i >= 0 {
		c.Message += fmt.Sprintf("; how requests are spread is for the Gateways whose routes name the object: proxies hand port tcp:%d to backend %s alone", f.Ports[i].Port, f.Ports[i].Backend.Name)
	} else if !balances(f) {
		c.Message += unbalanced(f)
	}
	return c
}

// balances reports whether proxies balance the backends of a port.
func balances(f Facts) bool {
	return slices.ContainsFunc(f.Ports, func(a ports.Assignment) bool { return len(a.Shares) > 0 })
}

// unbalanced returns what balances requests instead of a strategy that has no effect, because each
// port has one backend. It is empty without a strategy.
func unbalanced(f Facts) string {
	lb := f.Selection.Spec.LoadBalancing
	switch {
	case lb == nil || lb.Strategy == "" || lb.Strategy == gatewayv1alpha1.StrategyRoundRobin:
		return ""
	case ports.Strategy(f.Selection.Spec) == gatewayv1alpha1.StrategyRoundRobin:
		return "; how requests are spread is for the Gateway's routes to say, and not for spec.loadBalancing.strategy"
	}
	return fmt.Sprintf("; spec.loadBalancing.strategy %s has no effect, because no port has several backends: Kubernetes balances the pods of one", lb.Strategy)
}

// endpointsSelected returns the condition EndpointsSelected.
func endpointsSelected(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeEndpointsSelected, Status: compose.False}
	names := make([]string, len(f.Selection.Selected))
	for i, p := range f.Selection.Selected {
		names[i] = p.Spec.Endpoints
	}
	switch {
	case f.Selection.Err != nil:
		c.Reason, c.Message = meta.ReasonInvalidSelector, "spec.selector: "+f.Selection.Err.Error()
	case f.Selection.SeveralTailnets():
		c.Reason = meta.ReasonMultipleTailnets
		c.Message = fmt.Sprintf("The selected TailscaleEndpoints %s are of the tailnets %s; select those of one",
			compose.List(names...), compose.List(f.Selection.Tailnets()...))
	case f.Tailnet != "" && !f.Verdict.Accepted:
		c.Reason, c.Message = f.Verdict.Reason, f.Verdict.Message
	case f.Selection.Provision && !f.Selection.Provisioned():
		c.Reason = meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Making TailscaleEndpoints %s from spec.endpointTemplate", selection.TemplateName(f.Selection.Owner))
	case len(names) == 0:
		c.Reason = meta.ReasonNoEndpointsMatch
		c.Message = fmt.Sprintf("No TailscaleEndpoints of namespace %q match spec.selector; label one, or set spec.endpointTemplate", f.Selection.Owner.Namespace)
	case f.Selection.Provision:
		c.Status, c.Reason = compose.True, meta.ReasonEndpointsProvisioned
		c.Message = fmt.Sprintf("Made TailscaleEndpoints %s from spec.endpointTemplate", selection.TemplateName(f.Selection.Owner))
	default:
		c.Status, c.Reason = compose.True, meta.ReasonEndpointsSelected
		c.Message = "Selected TailscaleEndpoints " + compose.List(names...)
	}
	return c
}

// vipServiceReady returns the condition VIPServiceReady.
func vipServiceReady(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeVIPServiceReady, Status: compose.False, Reason: meta.ReasonVIPServiceCreating}
	switch {
	case f.Presence.Moving:
		c.Message = fmt.Sprintf("Deleting %s in tailnet %q to make it in %q", f.ServiceName, presence.Tailnet(f.VIPService), f.Tailnet)
	case f.VIPService == nil && (!f.Verdict.Accepted || f.Selection.Err != nil || f.Selection.SeveralTailnets()):
		c.Message = fmt.Sprintf("%s is made once endpoints are selected", f.ServiceName)
	case f.VIPService == nil && f.RefusedSpec:
		c.Message = fmt.Sprintf("%s is made once what the spec asks for can be served; see the condition %s", f.ServiceName, meta.TypeAccepted)
	case f.Presence.Created():
		c.Status, c.Reason = compose.True, meta.ReasonVIPServiceCreated
		c.Message = fmt.Sprintf("%s has the address %s", f.ServiceName, f.Presence.Addresses()[0])
	default:
		// The message is the same from the start: the VIPService that this run creates must not
		// change it in the next run.
		c.Message = fmt.Sprintf("Waiting for %s to get an address", f.ServiceName)
		if len(f.Presence.Addresses()) > 0 && f.Presence.DNSName() == "" {
			c.Message = fmt.Sprintf("Waiting for the DNS name of %s, which is known once the tailnet has a machine", f.ServiceName)
		}
		if p := vipProblem(f.VIPService); p != nil {
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
var refusals = []xpv2.ConditionReason{meta.ReasonForeignService, meta.ReasonNameTaken, meta.ReasonSharedByOthers, meta.ReasonNoClusterSet}

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
func advertised(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeAdvertised, Status: compose.False}
	total, healthy := f.Machines, presence.Count(f.Presence.Hosts(), tailnetv1alpha1.ServiceHost.Serves)
	switch {
	case f.PortsErr != nil:
		c.Reason, c.Message = f.PortsErr.Reason, fmt.Sprintf("%s is not served as the spec says; see the condition %s", f.ServiceName, meta.TypeAccepted)
	case f.Selection.NoneAllows() && !slices.ContainsFunc(f.Selection.Selected, f.HostsBefore):
		c.Reason = meta.ReasonPortsNotAllowed
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints allows all ports of %s; see the condition %s", f.ServiceName, meta.TypePortsAllowed)
	case healthy > 0:
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines host %s; status.healthyBackends counts them", f.ServiceName)
	case f.AsksDrain && f.Presence.Sharing && f.Answers:
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines of other clusters host %s; this cluster drains", f.ServiceName)
	case f.RouteOnly && f.Presence.Sharing && f.Answers:
		c.Status, c.Reason = compose.True, meta.ReasonHostsAdvertising
		c.Message = fmt.Sprintf("Machines of other clusters host %s; this cluster has none that could", f.ServiceName)
	case presence.Count(f.Presence.Hosts(), isPending) > 0:
		c.Reason = meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("No machine that offers %s is approved", f.ServiceName)
	case len(f.Selection.Selected) > 0 && !slices.ContainsFunc(f.Selection.Selected, selection.HasIngress):
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("No selected TailscaleEndpoints has ingress proxies to host %s; set spec.proxy.connectionType of one to ingress or bidirectional", f.ServiceName)
	case total == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("There is no machine to host %s", f.ServiceName)
	case len(f.Presence.Addresses()) == 0:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("Machines host %s once it has an address", f.ServiceName)
	case f.Presence.CertificateProblem() != nil:
		p := f.Presence.CertificateProblem()
		c.Reason, c.Message = p.Reason, p.Message
	default:
		c.Reason = meta.ReasonNoHealthyBackend
		c.Message = fmt.Sprintf("No machine offers %s: each does once it is in the tailnet, serves all ports, and its backends answer; check that %s exists and serves its port; status.agent of the Machines shows what is missing", f.ServiceName, backendNames(f))
	}
	return c
}

// primaryChosen returns the condition Routed, which the provider sets once hosts were accepted.
func primaryChosen(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeRouted, Reason: meta.ReasonNoHost, Message: fmt.Sprintf("No machine offers %s", f.ServiceName)}
	p := f.Presence.Routing()
	if p == nil {
		return c
	}
	c.Reason, c.Message = p.Reason, p.Message
	switch p.Status {
	case corev1.ConditionTrue:
		c.Status, c.Message = compose.True, fmt.Sprintf("Tailscale sends clients to a host of %s", f.ServiceName)
	case corev1.ConditionFalse:
		c.Status = compose.False
	case corev1.ConditionUnknown:
	}
	return c
}

// portsHealthy returns the condition PortsHealthy, which the provider sets once clients did not reach
// a port.
func portsHealthy(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypePortsHealthy, Status: compose.True, Reason: meta.ReasonPortsHealthy, Message: fmt.Sprintf("A host serves all ports of %s", f.ServiceName)}
	p := f.Presence.PortsHealth()
	switch {
	case p == nil:
		return compose.Condition{Type: meta.TypePortsHealthy, Reason: meta.ReasonNoHost, Message: fmt.Sprintf("No machine offers %s", f.ServiceName)}
	case p.Status == corev1.ConditionFalse:
		c.Status, c.Reason, c.Message = compose.False, p.Reason, p.Message
	}
	return c
}

// backendNames returns the backends by name, for a message.
func backendNames(f Facts) string {
	seen := map[string]bool{}
	var names []string
	for _, b := range f.Selection.Spec.Backends {
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
func approved(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeApproved}
	var pending []string
	for _, h := range f.Presence.Hosts() {
		if isPending(h) {
			pending = append(pending, h.Name)
		}
	}
	switch {
	case f.Presence.ApprovalForbidden() != nil:
		p := f.Presence.ApprovalForbidden()
		c.Status, c.Reason, c.Message = compose.False, p.Reason, p.Message
	case len(pending) > 0:
		c.Status, c.Reason = compose.False, meta.ReasonApprovalPending
		c.Message = fmt.Sprintf("%s wait for an approval to host %s: approve them in Tailscale's admin console, set spec.vipService.autoApprove, or add an auto-approver to the policy file",
			compose.List(pending...), f.ServiceName)
	case presence.Count(f.Presence.Hosts(), isOffered) > 0:
		c.Status, c.Reason = compose.True, meta.ReasonHostsApproved
		c.Message = fmt.Sprintf("All machines that offer %s are approved", f.ServiceName)
	default:
		c.Reason = meta.ReasonNoHost
		c.Message = fmt.Sprintf("No machine offers %s", f.ServiceName)
	}
	return c
}

// conflict returns the condition Conflict, which the provider reports about the clusters that
// share the service.
func conflict(f Facts) compose.Condition {
	c := compose.Condition{
		Type:    meta.TypeConflict,
		Reason:  compose.ReasonWaiting,
		Message: fmt.Sprintf("Waiting for the provider to compare what the clusters want of %s", f.ServiceName),
	}
	if f.Presence.Current == nil {
		return c
	}
	p := f.Presence.Current.GetCondition(meta.TypeConflict)
	switch p.Status {
	case corev1.ConditionTrue:
		c.Status, c.Reason, c.Message = compose.True, p.Reason, p.Message
	case corev1.ConditionFalse:
		c.Status, c.Reason = compose.False, p.Reason
		c.Message = fmt.Sprintf("All clusters that share %s want the same of it", f.ServiceName)
	case corev1.ConditionUnknown:
	}
	return c
}
