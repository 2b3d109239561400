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
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// prefixGateway starts the resource names of the Gateway's Tailscale Services. The
	// name of a tailnet follows.
	prefixGateway = "gateway-"

	// prefixService starts those of others. The name of a tailnet follows, and after
	// a slash what the service leads to. With prefixOwnService it has a name that no
	// other TailscaleGateway gives.
	prefixService    = "service-"
	prefixOwnService = "own-service-"

	// servicePrefix starts the names of Tailscale Services.
	servicePrefix = "svc:"

	// maxPorts is how many a Tailscale Service may have.
	maxPorts = 64

	// maxServices of a TailscaleGateway: Crossplane takes no more than 4 MiB of what a
	// function composes.
	maxServices = 1000
)

// A service is one TailscaleServices.
type service struct {
	tailnet *tailnet

	// target is what it leads to: a kind, a namespace and a name, with slashes.
	target string

	// parts of the name that it has in the tailnet.
	parts []string

	// fixed is the whole name. Empty where it is made of parts.
	fixed string

	// yields reports that another object of the cluster has the name that is made of parts.
	yields bool

	// backends that answer, each at one port.
	backends []gatewayv1alpha1.Backend

	// omitted says why there is none, which is no mistake. Empty if there is one.
	omitted string

	// lost reports that there is none for want of listeners that were there. One that
	// was made before stays: its address is not to be lost, too.
	lost bool

	// mistake is why there can be none. It is for the user.
	mistake string

	// keep what was observed: what it is to become is not known.
	keep bool

	// vip is the name in the tailnet.
	vip string

	// observed TailscaleServices. Nil when there is none.
	observed *gatewayv1alpha1.TailscaleServices
}

// key is the resource name. That of the Gateway's service does not say which Gateway:
// another one takes its place.
func (v *service) key() string {
	if v.isGateway() {
		return prefixGateway + v.tailnet.Name
	}
	if v.yields {
		return prefixOwnService + v.tailnet.Name + "/" + v.target
	}
	return prefixService + v.tailnet.Name + "/" + v.target
}

// observe the service's TailscaleServices. A name cannot be changed: where another object
// of the cluster has it, as one of a TailscaleGateway with the same routes, another
// TailscaleServices takes the place. That it is there tells later runs.
func (v *service) observe(in map[string]*gatewayv1alpha1.TailscaleServices) {
	v.observed = in[v.key()]
	if v.fixed != "" {
		return
	}
	own := &service{tailnet: v.tailnet, target: v.target, yields: true}
	if o := in[own.key()]; o != nil || v.nameTaken() && !v.keep {
		v.yields, v.observed = true, o
	}
}

// nameTaken reports whether another object of the cluster has the service.
func (v *service) nameTaken() bool {
	return v.observed != nil && v.observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonNameTaken
}

// isGateway reports whether a service leads to the Gateway as a whole.
func (v *service) isGateway() bool { return strings.HasPrefix(v.target, kindGateway+"/") }

// name of the TailscaleServices. The slashes of what it leads to bring a hash into it,
// but that of the Gateway has a plain one.
func (s *share) childName(v *service) string {
	if v.observed != nil {
		return v.observed.GetName()
	}
	if v.isGateway() {
		return compose.ChildName(s.owner.Name, v.tailnet.Name)
	}
	if v.yields {
		return compose.ChildName(s.owner.Name, v.tailnet.Name, v.target, "own")
	}
	return compose.ChildName(s.owner.Name, v.tailnet.Name, v.target)
}

// gatewayServiceName is the name of the Gateway's own Tailscale Service.
func (s *share) gatewayServiceName(t *tailnet) string {
	if n := t.VIPService.Name; n != "" {
		return string(n)
	}
	return servicePrefix + names.TailscaleService(s.owner.Name)
}

// observedServices by resource name.
func observedServices(r *compose.Run) (map[string]*gatewayv1alpha1.TailscaleServices, error) {
	out := map[string]*gatewayv1alpha1.TailscaleServices{}
	for _, name := range r.ObservedNames() {
		if !slices.ContainsFunc([]string{prefixGateway, prefixService, prefixOwnService}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		o := &gatewayv1alpha1.TailscaleServices{}
		if _, err := r.Observed(name, o); err != nil {
			return nil, err
		}
		out[name] = o
	}
	return out, nil
}

// planServices of each tailnet: that of the Gateway, those of its routes, and those of
// what is behind them. None of a Gateway that may not be shared, not even one that was made
// before.
func (s *share) planServices(observed map[string]*gatewayv1alpha1.TailscaleServices) {
	if !s.permitted() {
		return
	}
	if s.sharing() == gatewayv1alpha1.RouteSharingGateway {
		for _, t := range s.tailnets {
			s.services = append(s.services, s.gatewayService(t))
		}
	}
	for _, t := range s.tailnets {
		if s.knowsRoutes() {
			s.services = append(s.services, s.routeServices(t)...)
			continue
		}
		s.services = append(s.services, s.keptServices(t, observed)...)
	}
	for i, v := range s.services {
		v.observe(observed)
		if v.lost && v.observed != nil {
			v.omitted, v.keep = "", true
		}
		if i >= maxServices {
			v.omitted = fmt.Sprintf("A TailscaleGateway has no more than %d services; split its routes over several Gateways", maxServices)
		}
	}
	s.nameServices()
}

// knowsRoutes reports whether the routes of the Gateway are known. What was made for
// them stays as it is while they are not.
func (s *share) knowsRoutes() bool { return s.report != nil && s.found != nil }

// keptServices are those of routes and backends that were made before.
func (s *share) keptServices(t *tailnet, observed map[string]*gatewayv1alpha1.TailscaleServices) []*service {
	targets := map[string]bool{}
	for key := range observed {
		for _, prefix := range []string{prefixService, prefixOwnService} {
			if target, ok := strings.CutPrefix(key, prefix+t.Name+"/"); ok {
				targets[target] = true
			}
		}
	}
	var out []*service
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		kind, _, _ := strings.Cut(target, "/")
		if kind == kindService && s.publishes() || kind != kindService && s.sharing() == gatewayv1alpha1.RouteSharingRoute {
			out = append(out, &service{tailnet: t, target: target, keep: true})
		}
	}
	return out
}

func (s *share) gatewayService(t *tailnet) *service {
	v := &service{tailnet: t, target: kindGateway + "/" + s.gateway.name(), fixed: s.gatewayServiceName(t)}
	if s.found == nil {
		v.keep = true
		return v
	}
	s.answer(v, t.shared)
	if len(v.backends) == 0 {
		v.mistake = cmp.Or(t.mistake, fmt.Sprintf("Gateway %s serves no listener that a Tailscale Service can have a port for; add one", s.gateway.name()))
	}
	return v
}

// answer a service by listeners.
func (s *share) answer(v *service, listeners []sharedListener) {
	for _, l := range listeners {
		v.backends = append(v.backends, s.backend(l))
	}
	v.limit()
}

// limit the ports of a service to those that it can have.
func (v *service) limit() {
	if len(v.backends) > maxPorts {
		v.backends = nil
		v.mistake = fmt.Sprintf("%s has more than %d ports, which no Tailscale Service can have", v.target, maxPorts)
	}
}

// nameServices gives each the first of its names that no other of its tailnet has.
// One that is there keeps its own.
func (s *share) nameServices() {
	taken := map[string]bool{}
	id := func(v *service, name string) string { return v.tailnet.ref + "/" + name }
	for _, v := range s.services {
		if v.observed != nil {
			v.vip = string(v.observed.Spec.VIPService.Name)
			taken[id(v, v.vip)] = true
		}
	}
	for _, v := range s.services {
		if v.observed != nil || v.omitted != "" {
			continue
		}
		for _, n := range s.names(v) {
			v.vip = n
			if !taken[id(v, n)] {
				break
			}
		}
		if taken[id(v, v.vip)] {
			v.mistake = cmp.Or(v.mistake, "another entry of spec.tailnets has this name in the same tailnet; set vipService.name, or name the tailnet once")
		}
		taken[id(v, v.vip)] = true
	}
}

// names that a service may have, the best first.
func (s *share) names(v *service) []string {
	if v.fixed != "" {
		return []string{v.fixed}
	}
	if v.yields {
		return []string{servicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind(), s.owner.Namespace, s.owner.Name)...)}
	}
	return []string{
		servicePrefix + names.TailscaleService(v.parts...),
		servicePrefix + names.OtherTailscaleService(append(slices.Clone(v.parts), v.kind())...),
	}
}

// kind of what a service leads to, in lower case.
func (v *service) kind() string {
	kind, _, _ := strings.Cut(v.target, "/")
	return strings.ToLower(kind)
}

// wanted reports whether there is to be a TailscaleServices.
func (v *service) wanted() bool { return v.omitted == "" && v.mistake == "" }

// ready reports whether the service is in the tailnet as it is wanted. Its own condition
// Ready says more: that a machine hosts it, which none does while its backends are down.
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

// hosted reports whether a proxy hosts the service. It does no less while the provider can
// do nothing with the service, such as when Tailscale's API does not answer.
func (v *service) hosted() bool {
	if v.observed == nil || v.observed.Status.GetCondition(meta.TypeAdvertised).Status != corev1.ConditionTrue {
		return false
	}
	return v.ready() || v.observed.Status.GetCondition(meta.TypeVIPServiceReady).Reason == meta.ReasonCannotReconcile
}

// settled reports whether nothing is to come any more. What is behind routes may be down;
// the Gateway itself is to answer.
func (v *service) settled() bool { return v.ready() && (!v.isGateway() || v.hosted()) }

// problem is something for the user to fix. Empty if there is nothing.
func (v *service) problem() string {
	if v.mistake != "" || v.observed == nil {
		return v.mistake
	}
	if c := v.observed.Status.GetCondition(meta.TypeAccepted); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if c := v.observed.Status.GetCondition(meta.TypeVIPServiceReady); c.Status == corev1.ConditionFalse && c.Reason != meta.ReasonVIPServiceCreating {
		// The TailscaleServices is none that the user wrote.
		return strings.ReplaceAll(c.Message, "spec.vipService.", fmt.Sprintf("spec.tailnets[%s].vipService.", v.tailnet.Name))
	}
	if c := v.observed.Status.GetCondition(meta.TypeApproved); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}

// desireServices that can be. A new one has to wait for proxies that can host it: it
// changes a dozen times until it is there, and more often if it has to wait itself, each
// of which Crossplane's circuit breaker counts twice. They start all at once: the first
// is to answer before the last is made.
func (s *share) desireServices(r *compose.Run) error {
	unready := 0
	for _, v := range s.services {
		if !v.wanted() {
			if v.mistake != "" {
				r.NotReady()
			}
			// A mistake does not take away what is served.
			if v.observed == nil || v.omitted != "" {
				continue
			}
			v.keep = true
		}
		if v.observed == nil && (v.keep || !v.tailnet.ingress.canHost()) {
			r.NotReady()
			continue
		}
		if !v.settled() {
			unready++
		}
		if err := r.Desire(v.key(), s.composeService(v), v.settled()); err != nil {
			return err
		}
	}
	// What the circuit breaker drops meanwhile is not told again.
	if unready > 0 {
		r.NotReady()
		r.LookAgain()
	}
	return nil
}

func (s *share) composeService(v *service) *gatewayv1alpha1.TailscaleServices {
	o := &gatewayv1alpha1.TailscaleServices{
		ObjectMeta: metav1.ObjectMeta{Name: s.childName(v), Namespace: s.owner.Namespace, Labels: s.labels(v.tailnet)},
	}
	if v.keep {
		o.Spec = v.observed.Spec
		return o
	}
	vip := v.tailnet.VIPService
	o.Spec = gatewayv1alpha1.TailscaleServicesSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{
			meta.LabelGateway:        s.owner.Name,
			meta.LabelGatewayTailnet: v.tailnet.Name,
			meta.LabelDirection:      string(gatewayv1alpha1.ConnectionTypeIngress),
		}},
		VIPService: gatewayv1alpha1.VIPServiceTemplate{
			Name:        gatewayv1alpha1.ServiceName(v.vip),
			Tags:        vip.Tags,
			Comment:     vip.Comment,
			AutoApprove: ptr.To(ptr.Deref(vip.AutoApprove, true)),
			Routes:      s.leading(v),

			AdoptionPolicy: vip.AdoptionPolicy,
		},
		Backends: v.backends,
		Sharing:  cmp.Or(vip.Sharing, gatewayv1alpha1.SharingExclusive),
	}
	for _, b := range v.backends {
		o.Spec.VIPService.Ports = append(o.Spec.VIPService.Ports, gatewayv1alpha1.ServicePort(fmt.Sprintf("tcp:%d", *b.VIPPort)))
	}
	return o
}
