// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package services plans the Tailscale Services of a TailscaleGateway, which are TailscaleServices:
// those of the Gateway, of its routes, and of the Services behind them, in each tailnet.
package services

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

const (
	// PrefixGateway starts the resource names of the Gateway's Tailscale Services. The
	// name of a tailnet follows.
	PrefixGateway = "gateway-"

	// PrefixService starts the resource names of other Tailscale Services. The name of a tailnet
	// follows, and after a slash the service's target.
	PrefixService = "service-"

	// PrefixOwnService replaces PrefixService for a service with a name that no other
	// TailscaleGateway gives.
	PrefixOwnService = "own-service-"

	// maxPorts is the maximum number of ports of a Tailscale Service.
	maxPorts = 64

	// maxServices is the maximum number of services of a TailscaleGateway: Crossplane accepts at
	// most 4 MiB of composed objects.
	maxServices = 1000
)

// Facts are what the services follow from.
type Facts struct {
	Owner compose.Owner

	// Sharing is what the tailnets reach of the Gateway.
	Sharing gatewayv1alpha1.RouteSharing

	// Drain means that this cluster hands the services to others.
	Drain bool

	// Publish is which of the Services behind routes are shared, too.
	Publish gatewayv1alpha1.PublishBackends

	Gateway *front.Gateway

	// Report is the extension's report, or nil if there is none.
	Report *tailnetv1alpha1.GatewayReportSpec

	// Grants are the ReferenceGrants of the namespaces of backends, other than the object's.
	Grants refgrant.Grants

	Tailnets []*tailnets.Tailnet

	// Observed are the existing services, by resource name.
	Observed map[string]*gatewayv1alpha1.TailscaleServices

	// Reported are the services in the status.
	Reported []gatewayv1alpha1.GatewayServiceInfo
}

// publishes reports whether the Services behind routes are also shared.
func (f Facts) publishes() bool { return f.Publish != gatewayv1alpha1.PublishBackendsNone }

// ServesRoutes reports whether routes, or the Services behind them, have Tailscale Services.
func ServesRoutes(sharing gatewayv1alpha1.RouteSharing, publish gatewayv1alpha1.PublishBackends) bool {
	return sharing == gatewayv1alpha1.RouteSharingRoute || publish != gatewayv1alpha1.PublishBackendsNone
}

// A Plan is the services of a TailscaleGateway.
type Plan struct {
	Facts

	// Services are those of the Gateway, of routes, and of backends, in this order.
	Services []*Service
}

// A Service is one TailscaleServices.
type Service struct {
	Tailnet *tailnets.Tailnet

	// Target is the service's target: a kind, a namespace and a name, with slashes.
	Target string

	// Name is the name of the TailscaleServices.
	Name string

	// parts are the parts of its name in the tailnet.
	parts []string

	// fixed is the whole name. It is empty if the name is made of parts.
	fixed string

	// yields means that another object of the cluster has the name that is made of parts.
	yields bool

	// Backends are the backends that answer, each at one port.
	Backends []gatewayv1alpha1.Backend

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

	// Observed is the observed TailscaleServices, or nil if there is none.
	Observed *gatewayv1alpha1.TailscaleServices
}

// key returns the resource name. The resource name of the Gateway's service does not contain the
// Gateway's name, because another Gateway may replace the Gateway.
func (v *Service) key() string {
	if v.IsGateway() {
		return PrefixGateway + v.Tailnet.Name
	}
	if v.yields {
		return PrefixOwnService + v.Tailnet.Name + "/" + v.Target
	}
	return PrefixService + v.Tailnet.Name + "/" + v.Target
}

// observe sets the service's TailscaleServices. A name cannot be changed: where another object
// of the cluster has it, such as one of a TailscaleGateway with the same routes, another
// TailscaleServices takes the place. Later runs recognize the case by its existence.
func (v *Service) observe(existing map[string]*gatewayv1alpha1.TailscaleServices) {
	v.Observed = existing[v.key()]
	if v.fixed != "" {
		return
	}
	own := &Service{Tailnet: v.Tailnet, Target: v.Target, yields: true}
	if o := existing[own.key()]; o != nil || v.nameTaken() && !v.keep {
		v.yields, v.Observed = true, o
	}
}

// nameTaken reports whether another object of the cluster has the service.
func (v *Service) nameTaken() bool {
	return v.Observed != nil && v.Observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonNameTaken
}

// IsGateway reports whether a service leads to the Gateway as a whole.
func (v *Service) IsGateway() bool { return strings.HasPrefix(v.Target, front.KindGateway+"/") }

// childName returns the name of a service's TailscaleServices. The slashes of a target add a hash to
// it, but the Gateway's service has a plain name.
func childName(owner compose.Owner, v *Service) string {
	if v.Observed != nil {
		return v.Observed.GetName()
	}
	if v.IsGateway() {
		return names.Child(owner.Name, v.Tailnet.Name)
	}
	if v.yields {
		return names.Child(owner.Name, v.Tailnet.Name, v.Target, "own")
	}
	return names.Child(owner.Name, v.Tailnet.Name, v.Target)
}

// New returns the services of each tailnet: that of the Gateway, those of its routes, and those of
// the Services behind them. A Gateway that may not be shared has no services, not even existing ones,
// and while the Gateway is ambiguous there are only existing ones.
func New(f Facts) Plan {
	if !f.Gateway.Permitted() {
		return Plan{Facts: f}
	}
	var out []*Service
	if f.Sharing == gatewayv1alpha1.RouteSharingGateway {
		for _, t := range f.Tailnets {
			out = append(out, gatewayService(f, t))
		}
	}
	if f.knowsRoutes() {
		s := read(f)
		for _, t := range f.Tailnets {
			out = append(out, routeServices(f, t, s)...)
		}
	} else {
		for _, t := range f.Tailnets {
			out = append(out, keptServices(f, t)...)
		}
	}
	for _, v := range out {
		v.observe(f.Observed)
		v.Name = childName(f.Owner, v)
		if v.lost && v.Observed != nil {
			v.omitted, v.keep = "", true
		}
	}
	limitServices(f, out)
	nameServices(f, out)
	if f.Gateway.Ambiguous() {
		out = slices.DeleteFunc(out, func(v *Service) bool { return v.Observed == nil })
	}
	return Plan{Facts: f, Services: out}
}

// knowsRoutes reports whether the routes of the Gateway are known. Otherwise their services stay
// unchanged.
func (f Facts) knowsRoutes() bool { return f.Report != nil && f.Gateway.Found != nil }

// keptServices returns the existing services of routes and backends.
func keptServices(f Facts, t *tailnets.Tailnet) []*Service {
	targets := map[string]bool{}
	for key := range f.Observed {
		for _, prefix := range []string{PrefixService, PrefixOwnService} {
			if target, ok := strings.CutPrefix(key, prefix+t.Name+"/"); ok {
				targets[target] = true
			}
		}
	}
	var out []*Service
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		kind, _, _ := strings.Cut(target, "/")
		if kind == routes.KindService && f.publishes() || kind != routes.KindService && f.Sharing == gatewayv1alpha1.RouteSharingRoute {
			out = append(out, &Service{Tailnet: t, Target: target, keep: true})
		}
	}
	return out
}

// gatewayService returns the Gateway's own service in a tailnet.
func gatewayService(f Facts, t *tailnets.Tailnet) *Service {
	v := &Service{Tailnet: t, Target: front.KindGateway + "/" + f.Gateway.Name(), fixed: t.GatewayService(f.Owner)}
	if f.Gateway.Found == nil {
		v.keep = true
		return v
	}
	answer(f, v, t.Shared)
	if len(v.Backends) == 0 {
		v.mistake = cmp.Or(t.Mistake, fmt.Sprintf("Gateway %s serves no listener that a Tailscale Service can have a port for; add one", f.Gateway.Name()))
	}
	return v
}

// answer sets the listeners that answer a service.
func answer(f Facts, v *Service, listeners []tailnets.Listener) {
	for _, l := range listeners {
		v.Backends = append(v.Backends, listenerBackend(f, l))
	}
	v.limit()
}

// limit sets a mistake on a service with more ports than it can have.
func (v *Service) limit() {
	if len(v.Backends) > maxPorts {
		v.Backends = nil
		v.mistake = fmt.Sprintf("%s has more than %d ports, which no Tailscale Service can have", v.Target, maxPorts)
	}
}

// nameServices sets the name of each service: the first that no other service of its tailnet
// has. An existing service keeps its name.
func nameServices(f Facts, services []*Service) {
	usedNames := map[string]bool{}
	id := func(v *Service, name string) string { return v.Tailnet.Ref + "/" + name }
	for _, v := range services {
		if v.Observed != nil {
			v.vip = string(v.Observed.Spec.VIPService.Name)
			usedNames[id(v, v.vip)] = true
		}
	}
	for _, v := range services {
		if v.Observed != nil || v.omitted != "" {
			continue
		}
		for _, n := range serviceNames(f, v) {
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

// serviceNames returns the names in the tailnet that a service may have, the best first.
func serviceNames(f Facts, v *Service) []string {
	if v.fixed != "" {
		return []string{v.fixed}
	}
	if v.yields {
		return []string{tailnets.ServicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind(), f.Owner.Namespace, f.Owner.Name)...)}
	}
	return []string{
		tailnets.ServicePrefix + names.TailscaleService(v.parts...),
		tailnets.ServicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind())...),
	}
}

// renamed returns that a service does not have its usual name, or an empty string. Usual names are
// ambiguous: Service a-b in namespace c and Service a in namespace b-c have the same. The first
// owner keeps it, as the annotation of the owner on the Tailscale Service proves, and clients in the
// tailnet that use the name reach that one.
func renamed(v *Service) string {
	if len(v.parts) == 0 || v.Observed == nil || v.omitted != "" {
		return ""
	}
	usual := tailnets.ServicePrefix + names.TailscaleService(v.parts...)
	if v.vip == usual {
		return ""
	}
	return fmt.Sprintf("%s has the name %s in tailnet %q, because another object of this cluster had %s first; "+
		"clients must use the first one. To get the usual name, rename or no longer share the other object, and then delete TailscaleServices %s",
		v.Target, v.vip, v.Tailnet.Ref, usual, v.Name)
}

// kind returns the kind of a service's target, in lower case.
func (v *Service) kind() string {
	kind, _, _ := strings.Cut(v.Target, "/")
	return strings.ToLower(kind)
}

// Wanted reports whether there should be a TailscaleServices.
func (v *Service) Wanted() bool { return v.omitted == "" && v.mistake == "" }

// ready reports whether the service has its desired state in the tailnet. Its own condition Ready
// also requires that a machine hosts it, which no machine does while its backends do not answer.
func (v *Service) ready() bool {
	if v.Observed == nil {
		return false
	}
	st := &v.Observed.Status
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
func (v *Service) hosted() bool {
	if v.Observed == nil || v.Observed.Status.GetCondition(meta.TypeAdvertised).Status != corev1.ConditionTrue {
		return false
	}
	return v.ready() || v.Observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonCannotReconcile
}

// settled reports whether no more changes are expected. Backends of routes may be unavailable; the
// Gateway itself should answer.
func (v *Service) settled() bool { return v.ready() && (!v.IsGateway() || v.hosted()) }

// problem returns the problem that the user has to fix, or an empty string.
func (v *Service) problem() string {
	if v.mistake != "" || v.Observed == nil {
		return v.mistake
	}
	if c := v.Observed.Status.GetCondition(meta.TypeAccepted); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if c := v.Observed.Status.GetCondition(meta.TypeVIPServiceReady); c.Status == corev1.ConditionFalse && c.Reason != meta.ReasonVIPServiceCreating {
		// The user did not write the TailscaleServices.
		return strings.ReplaceAll(c.Message, "spec.vipService.", fmt.Sprintf("spec.tailnets[%s].vipService.", v.Tailnet.Name))
	}
	if c := v.Observed.Status.GetCondition(meta.TypeApproved); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}
