// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// prefixGateway starts the resource names of the Gateway's Tailscale Services. The
	// name of a tailnet follows.
	prefixGateway = "gateway-"

	// prefixService starts the resource names of other Tailscale Services. The name of a tailnet
	// follows, and after a slash the service's target. prefixOwnService is for a service with a
	// name that no other TailscaleGateway gives.
	prefixService    = "service-"
	prefixOwnService = "own-service-"

	// servicePrefix starts the names of Tailscale Services.
	servicePrefix = "svc:"

	// maxPorts is the maximum number of ports of a Tailscale Service.
	maxPorts = 64

	// maxServices is the maximum number of services of a TailscaleGateway: Crossplane accepts at
	// most 4 MiB of composed objects.
	maxServices = 1000
)

// A service is one TailscaleServices.
type service struct {
	tailnet *tailnet

	// target is the service's target: a kind, a namespace and a name, with slashes.
	target string

	// parts are the parts of its name in the tailnet.
	parts []string

	// fixed is the whole name. It is empty if the name is made of parts.
	fixed string

	// yields means that another object of the cluster has the name that is made of parts.
	yields bool

	// backends are the backends that answer, each at one port.
	backends []gatewayv1alpha1.Backend

	// omitted is the reason why there is no service, other than a mistake. It is empty if there is
	// a service.
	omitted string

	// lost means that there is no service because its listeners no longer exist. An existing
	// service stays, because its address would be lost as well.
	lost bool

	// mistake is the reason why there can be no service. It is for the user.
	mistake string

	// full means that it is omitted because there are too many services.
	full bool

	// keep means that the observed service stays unchanged, because its desired state is unknown.
	keep bool

	// vip is the name in the tailnet.
	vip string

	// observed is the observed TailscaleServices, or nil if there is none.
	observed *gatewayv1alpha1.TailscaleServices
}

// key returns the resource name. The resource name of the Gateway's service does not contain the
// Gateway's name, because another Gateway may replace the Gateway.
func (v *service) key() string {
	if v.isGateway() {
		return prefixGateway + v.tailnet.Name
	}
	if v.yields {
		return prefixOwnService + v.tailnet.Name + "/" + v.target
	}
	return prefixService + v.tailnet.Name + "/" + v.target
}

// observe sets the service's TailscaleServices. A name cannot be changed: where another object
// of the cluster has it, such as one of a TailscaleGateway with the same routes, another
// TailscaleServices takes the place. Later runs recognize the case by its existence.
func (v *service) observe(existing map[string]*gatewayv1alpha1.TailscaleServices) {
	v.observed = existing[v.key()]
	if v.fixed != "" {
		return
	}
	own := &service{tailnet: v.tailnet, target: v.target, yields: true}
	if o := existing[own.key()]; o != nil || v.nameTaken() && !v.keep {
		v.yields, v.observed = true, o
	}
}

// nameTaken reports whether another object of the cluster has the service.
func (v *service) nameTaken() bool {
	return v.observed != nil && v.observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonNameTaken
}

// isGateway reports whether a service leads to the Gateway as a whole.
func (v *service) isGateway() bool { return strings.HasPrefix(v.target, kindGateway+"/") }

// childName returns the name of the TailscaleServices. The slashes of a target add a hash to it,
// but the Gateway's service has a plain name.
func childName(gp *gatewayPlan, v *service) string {
	if v.observed != nil {
		return v.observed.GetName()
	}
	if v.isGateway() {
		return names.Child(gp.owner.Name, v.tailnet.Name)
	}
	if v.yields {
		return names.Child(gp.owner.Name, v.tailnet.Name, v.target, "own")
	}
	return names.Child(gp.owner.Name, v.tailnet.Name, v.target)
}

// gatewayServiceName returns the name of the Gateway's own Tailscale Service.
func (gp *gatewayPlan) gatewayServiceName(t *tailnet) string {
	if n := t.VIPService.Name; n != "" {
		return string(n)
	}
	return servicePrefix + names.TailscaleService(gp.owner.Name)
}

// planServices returns the services of each tailnet: that of the Gateway, those of its routes, and
// those of the Services behind them. A Gateway that may not be shared has no services, not even
// existing ones.
func planServices(gp *gatewayPlan) []*service {
	if !gp.permitted() {
		return nil
	}
	var out []*service
	if gp.sharing() == gatewayv1alpha1.RouteSharingGateway {
		for _, t := range gp.tailnets {
			out = append(out, gatewayService(gp, t))
		}
	}
	for _, t := range gp.tailnets {
		if gp.knowsRoutes() {
			out = append(out, routeServices(gp, t)...)
			continue
		}
		out = append(out, keptServices(gp, t)...)
	}
	for _, v := range out {
		v.observe(gp.observed.services)
		if v.lost && v.observed != nil {
			v.omitted, v.keep = "", true
		}
	}
	limitServices(gp, out)
	nameServices(gp, out)
	return out
}

// knowsRoutes reports whether the routes of the Gateway are known. Otherwise their services stay
// unchanged.
func (gp *gatewayPlan) knowsRoutes() bool { return gp.report != nil && gp.found != nil }

// keptServices returns the existing services of routes and backends.
func keptServices(gp *gatewayPlan, t *tailnet) []*service {
	targets := map[string]bool{}
	for key := range gp.observed.services {
		for _, prefix := range []string{prefixService, prefixOwnService} {
			if target, ok := strings.CutPrefix(key, prefix+t.Name+"/"); ok {
				targets[target] = true
			}
		}
	}
	var out []*service
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		kind, _, _ := strings.Cut(target, "/")
		if kind == kindService && gp.publishes() || kind != kindService && gp.sharing() == gatewayv1alpha1.RouteSharingRoute {
			out = append(out, &service{tailnet: t, target: target, keep: true})
		}
	}
	return out
}

// gatewayService returns the Gateway's own service in a tailnet.
func gatewayService(gp *gatewayPlan, t *tailnet) *service {
	v := &service{tailnet: t, target: kindGateway + "/" + gp.gateway.name(), fixed: gp.gatewayServiceName(t)}
	if gp.found == nil {
		v.keep = true
		return v
	}
	answer(gp, v, t.shared)
	if len(v.backends) == 0 {
		v.mistake = cmp.Or(t.mistake, fmt.Sprintf("Gateway %s serves no listener that a Tailscale Service can have a port for; add one", gp.gateway.name()))
	}
	return v
}

// answer sets the listeners that answer a service.
func answer(gp *gatewayPlan, v *service, listeners []sharedListener) {
	for _, l := range listeners {
		v.backends = append(v.backends, gp.backend(l))
	}
	v.limit()
}

// limit sets a mistake on a service with more ports than it can have.
func (v *service) limit() {
	if len(v.backends) > maxPorts {
		v.backends = nil
		v.mistake = fmt.Sprintf("%s has more than %d ports, which no Tailscale Service can have", v.target, maxPorts)
	}
}

// nameServices sets the name of each service: the first that no other service of its tailnet
// has. An existing service keeps its name.
func nameServices(gp *gatewayPlan, services []*service) {
	usedNames := map[string]bool{}
	id := func(v *service, name string) string { return v.tailnet.ref + "/" + name }
	for _, v := range services {
		if v.observed != nil {
			v.vip = string(v.observed.Spec.VIPService.Name)
			usedNames[id(v, v.vip)] = true
		}
	}
	for _, v := range services {
		if v.observed != nil || v.omitted != "" {
			continue
		}
		for _, n := range gp.names(v) {
			v.vip = n
			if !usedNames[id(v, n)] {
				break
			}
		}
		if usedNames[id(v, v.vip)] {
			v.mistake = cmp.Or(v.mistake, "another entry of spec.tailnets has this name in the same tailnet; set vipService.name, or name the tailnet once")
		}
		usedNames[id(v, v.vip)] = true
	}
}

// names returns the names that a service may have, the best first.
func (gp *gatewayPlan) names(v *service) []string {
	if v.fixed != "" {
		return []string{v.fixed}
	}
	if v.yields {
		return []string{servicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind(), gp.owner.Namespace, gp.owner.Name)...)}
	}
	return []string{
		servicePrefix + names.TailscaleService(v.parts...),
		servicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind())...),
	}
}

// renamed returns that a service does not have its usual name, or an empty string. Usual names are
// ambiguous: Service a-b in namespace c and Service a in namespace b-c have the same. The first
// owner keeps it, as the annotation of the owner on the Tailscale Service proves, and clients in the
// tailnet that use the name reach that one.
func renamed(gp *gatewayPlan, v *service) string {
	if len(v.parts) == 0 || v.observed == nil || v.omitted != "" {
		return ""
	}
	usual := servicePrefix + names.TailscaleService(v.parts...)
	if v.vip == usual {
		return ""
	}
	return fmt.Sprintf("%s has the name %s in tailnet %q, because another object of this cluster had %s first; "+
		"clients must use the first one. To get the usual name, rename or no longer share the other object, and then delete TailscaleServices %s",
		v.target, v.vip, v.tailnet.ref, usual, childName(gp, v))
}

// kind returns the kind of a service's target, in lower case.
func (v *service) kind() string {
	kind, _, _ := strings.Cut(v.target, "/")
	return strings.ToLower(kind)
}

// wanted reports whether there should be a TailscaleServices.
func (v *service) wanted() bool { return v.omitted == "" && v.mistake == "" }

// ready reports whether the service has its desired state in the tailnet. Its own condition Ready
// also requires that a machine hosts it, which no machine does while its backends do not answer.
func (v *service) ready() bool {
	if v.observed == nil {
		return false
	}
	st := &v.observed.Status
	if st.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return true
	}
	for _, t := range []xpv2.ConditionType{meta.TypeAccepted, meta.TypeEndpointsSelected, meta.TypeVIPServiceReady} {
		if st.GetCondition(t).Status != corev1.ConditionTrue {
			return false
		}
	}
	return true
}

// hosted reports whether a proxy hosts the service. A proxy that hosted the service before still
// does while the provider cannot reconcile the service, for example because Tailscale's API does
// not answer.
func (v *service) hosted() bool {
	if v.observed == nil || v.observed.Status.GetCondition(meta.TypeAdvertised).Status != corev1.ConditionTrue {
		return false
	}
	return v.ready() || v.observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonCannotReconcile
}

// settled reports whether no more changes are expected. Backends of routes may be unavailable; the
// Gateway itself should answer.
func (v *service) settled() bool { return v.ready() && (!v.isGateway() || v.hosted()) }

// problem returns the problem that the user has to fix, or an empty string.
func (v *service) problem() string {
	if v.mistake != "" || v.observed == nil {
		return v.mistake
	}
	if c := v.observed.Status.GetCondition(meta.TypeAccepted); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if c := v.observed.Status.GetCondition(meta.TypeVIPServiceReady); c.Status == corev1.ConditionFalse && c.Reason != meta.ReasonVIPServiceCreating {
		// The user did not write the TailscaleServices.
		return strings.ReplaceAll(c.Message, "spec.vipService.", fmt.Sprintf("spec.tailnets[%s].vipService.", v.tailnet.Name))
	}
	if c := v.observed.Status.GetCondition(meta.TypeApproved); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}

// serviceChildren returns the services that can exist. A new service has to wait for proxies that
// can host it: it changes a dozen times until it is configured, and more often if it has to wait
// itself, and Crossplane's circuit breaker counts each change twice. All services start at the same
// time, so that the first answers before the last is created.
func serviceChildren(gp *gatewayPlan) children {
	var out children
	for _, v := range gp.services {
		if !v.wanted() {
			out.incomplete = out.incomplete || v.mistake != ""
			// A mistake does not delete an existing service.
			if v.observed == nil || v.omitted != "" {
				continue
			}
		}
		keep := v.keep || !v.wanted()
		if v.observed == nil && (keep || !v.tailnet.ingress.canHost()) {
			out.incomplete = true
			continue
		}
		// The circuit breaker may drop changes until then.
		if !v.settled() {
			out.incomplete, out.requeue = true, true
		}
		o := keepService(gp, v)
		if !keep {
			o = composeService(gp, v)
		}
		out.add(v.key(), o, v.settled())
	}
	return out
}

// serviceMeta returns the metadata of a TailscaleServices.
func serviceMeta(gp *gatewayPlan, v *service) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: childName(gp, v), Namespace: gp.owner.Namespace, Labels: gp.labels(v.tailnet)}
}

// keepService returns an observed TailscaleServices unchanged. It is empty if there is none.
func keepService(gp *gatewayPlan, v *service) *gatewayv1alpha1.TailscaleServices {
	if v.observed == nil {
		return nil
	}
	return &gatewayv1alpha1.TailscaleServices{ObjectMeta: serviceMeta(gp, v), Spec: v.observed.Spec}
}

// composeService returns the TailscaleServices of a service.
func composeService(gp *gatewayPlan, v *service) *gatewayv1alpha1.TailscaleServices {
	o := &gatewayv1alpha1.TailscaleServices{ObjectMeta: serviceMeta(gp, v)}
	vip := v.tailnet.VIPService
	o.Spec = gatewayv1alpha1.TailscaleServicesSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{
			meta.LabelGateway:        gp.owner.Name,
			meta.LabelGatewayTailnet: v.tailnet.Name,
			meta.LabelDirection:      string(gatewayv1alpha1.ConnectionTypeIngress),
		}},
		VIPService: gatewayv1alpha1.VIPServiceTemplate{
			Name:        gatewayv1alpha1.ServiceName(v.vip),
			Tags:        vip.Tags,
			Comment:     vip.Comment,
			AutoApprove: ptr.To(ptr.Deref(vip.AutoApprove, true)),
			Routes:      recordedRoutes(gp, v),

			AdoptionPolicy: vip.AdoptionPolicy,
			DeletionPolicy: vip.DeletionPolicy,
		},
		Backends: v.backends,
		Sharing:  cmp.Or(vip.Sharing, gatewayv1alpha1.SharingExclusive),
	}
	for _, b := range v.backends {
		o.Spec.VIPService.Ports = append(o.Spec.VIPService.Ports, gatewayv1alpha1.ServicePort(fmt.Sprintf("tcp:%d", *b.VIPPort)))
	}
	return o
}
