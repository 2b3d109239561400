// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// A refKind is a kind of thing that is looked up.
type refKind int

// Kinds of things that are looked up.
const (
	refServices refKind = iota
	refEndpoints
	// refProxySet is that of a TailscaleEndpoints, by its name.
	refProxySet
	// refAttachments are those of a TailscaleServices, by its name.
	refAttachments
	// refAttachment is a ServiceAttachment, by its own name.
	refAttachment
	refService
	// refSlices are those of a Service, by its name.
	refSlices
	// refServicesTLS and refEndpointsTLS are the BackendTLSPolicies of an object.
	refServicesTLS
	refEndpointsTLS
	refConfigMap
	// refHost is a DNS name.
	refHost
	// refAddress is who has an address, and refGrants are those of a namespace.
	refAddress
	refGrants
)

// A ref is one thing that was looked up, whether it was there or not.
type ref struct {
	kind refKind
	types.NamespacedName
}

// A group is objects that are looked up by a name that they share.
type group[T any] map[types.NamespacedName]map[types.NamespacedName]T

func (g group[T]) set(shared, name types.NamespacedName, v T) {
	if g[shared] == nil {
		g[shared] = map[types.NamespacedName]T{}
	}
	g[shared][name] = v
}

func (g group[T]) unset(shared, name types.NamespacedName) {
	delete(g[shared], name)
	if len(g[shared]) == 0 {
		delete(g, shared)
	}
}

// sorted by name.
func (g group[T]) sorted(shared types.NamespacedName) []T {
	of := g[shared]
	out := make([]T, 0, len(of))
	for _, n := range slices.SortedFunc(maps.Keys(of), ir.CompareNames) {
		out = append(out, of[n])
	}
	return out
}

// A world is all objects that are known, as far as anything here needs them.
type world struct {
	routes       map[ir.RouteKey]*parse.RouteObject
	listenerSets map[types.NamespacedName]types.NamespacedName
	policies     map[types.NamespacedName]*parse.TrafficPolicy
	grants       refgrant.Grants

	// routePolicies, the names of those by what they rest on, and the sites of all routes
	// that this may be.
	routePolicies map[types.NamespacedName]*ir.RoutePolicy
	resting       map[ir.PolicyTarget]map[types.NamespacedName]struct{}
	sites         map[ir.RouteKey]*site

	// found is what Discoveries found for policies, and asks which policy one is for.
	found map[types.NamespacedName]*parse.Discovered
	asks  map[types.NamespacedName]types.NamespacedName

	// held is what is known of Secrets with client certificates.
	held map[types.NamespacedName]*ir.CertificateSecret

	// certificates that Gateways present.
	certificates map[types.NamespacedName]*ir.ClientCertificate

	services    map[types.NamespacedName]*gatewayv1alpha1.TailscaleServicesSpec
	endpoints   map[types.NamespacedName]*gatewayv1alpha1.TailscaleEndpointsSpec
	proxySets   group[*tailnetv1alpha1.ProxySetSpec]
	attachments group[*tailnetv1alpha1.ServiceAttachment]
	kube        map[types.NamespacedName]*parse.Service
	slices      group[*parse.EndpointSlice]
	tls         [2]group[*gwapiv1.BackendTLSPolicy]
	configMaps  map[types.NamespacedName]string
	hosts       map[string][]string

	// offline are the endpoints of a TailscaleEndpoints whose devices are.
	offline map[types.NamespacedName]map[string]bool

	// abouts of Gateways.
	abouts map[types.NamespacedName]*ir.Gateway

	// identities are listeners that TailscaleGateways want told by headers who asks, by
	// Gateway, and joined those Gateways by TailscaleGateway.
	identities group[identity]
	joined     map[types.NamespacedName]types.NamespacedName

	// dialling is what Envoys connect to by themselves, and owners has whose an address
	// is, if they do.
	dialling Dialling
	owners   owners

	// parameters are what Gateways have their EnvoyProxies from, classes those of
	// GatewayClasses, and proxies are all that are there.
	parameters map[types.NamespacedName]gatewayParameters
	classes    map[string]types.NamespacedName
	proxies    map[types.NamespacedName]*parse.EnvoyProxy

	// config names the ConfigMap of Envoy Gateway's configuration, and defaultProxy is the
	// EnvoyProxy in it. It may be nil.
	config       types.NamespacedName
	defaultProxy *parse.EnvoyProxy

	// check judges rules of policies that can be read. It may be nil.
	check func(*ir.PolicyRule) error

	// placements of targets, by what probes found out.
	placements map[ir.TargetKey]ir.Placement

	// shared is what an object was filed under when it came: that may change.
	shared map[filed][]types.NamespacedName
}

// A filed object of a group.
type filed struct {
	kind refKind
	types.NamespacedName
}

func newWorld() *world {
	return &world{
		routes:       map[ir.RouteKey]*parse.RouteObject{},
		listenerSets: map[types.NamespacedName]types.NamespacedName{},
		policies:     map[types.NamespacedName]*parse.TrafficPolicy{},
		grants:       refgrant.Grants{},

		routePolicies: map[types.NamespacedName]*ir.RoutePolicy{},
		resting:       map[ir.PolicyTarget]map[types.NamespacedName]struct{}{},
		sites:         map[ir.RouteKey]*site{},
		found:         map[types.NamespacedName]*parse.Discovered{},
		asks:          map[types.NamespacedName]types.NamespacedName{},
		held:          map[types.NamespacedName]*ir.CertificateSecret{},
		certificates:  map[types.NamespacedName]*ir.ClientCertificate{},

		services:    map[types.NamespacedName]*gatewayv1alpha1.TailscaleServicesSpec{},
		endpoints:   map[types.NamespacedName]*gatewayv1alpha1.TailscaleEndpointsSpec{},
		proxySets:   group[*tailnetv1alpha1.ProxySetSpec]{},
		attachments: group[*tailnetv1alpha1.ServiceAttachment]{},
		kube:        map[types.NamespacedName]*parse.Service{},
		slices:      group[*parse.EndpointSlice]{},
		tls:         [2]group[*gwapiv1.BackendTLSPolicy]{{}, {}},
		configMaps:  map[types.NamespacedName]string{},
		hosts:       map[string][]string{},
		offline:     map[types.NamespacedName]map[string]bool{},
		abouts:      map[types.NamespacedName]*ir.Gateway{},
		identities:  group[identity]{},
		joined:      map[types.NamespacedName]types.NamespacedName{},
		owners:      newOwners(),
		parameters:  map[types.NamespacedName]gatewayParameters{},
		classes:     map[string]types.NamespacedName{},
		proxies:     map[types.NamespacedName]*parse.EnvoyProxy{},
		placements:  map[ir.TargetKey]ir.Placement{},
		shared:      map[filed][]types.NamespacedName{},
	}
}

// A dirty is what must be looked at again after a change.
type dirty struct {
	refs   map[ref]struct{}
	routes map[ir.RouteKey]struct{}

	// targets whose endpoints have another health.
	targets map[ir.TargetKey]struct{}

	// pins are the routes whose policies may be others.
	pins   map[ir.RouteKey]struct{}
	grants bool

	// gateways of which something else may be known.
	gateways map[types.NamespacedName]struct{}

	// identities are the Gateways of which other listeners may be told who asks.
	identities map[types.NamespacedName]struct{}

	// policies that may do something else, or elsewhere.
	policies map[types.NamespacedName]struct{}

	// secrets of which something else is known, and certificates of Gateways.
	secrets, certificates map[types.NamespacedName]struct{}

	// bootstraps are the Gateways whose EnvoyProxies may be others.
	bootstraps map[types.NamespacedName]struct{}
}

func newDirty() *dirty {
	return &dirty{
		refs: map[ref]struct{}{}, routes: map[ir.RouteKey]struct{}{}, targets: map[ir.TargetKey]struct{}{}, pins: map[ir.RouteKey]struct{}{},
		gateways: map[types.NamespacedName]struct{}{}, identities: map[types.NamespacedName]struct{}{}, policies: map[types.NamespacedName]struct{}{},
		secrets: map[types.NamespacedName]struct{}{}, certificates: map[types.NamespacedName]struct{}{},
		bootstraps: map[types.NamespacedName]struct{}{},
	}
}

func (d *dirty) ref(k refKind, n types.NamespacedName) {
	d.refs[ref{kind: k, NamespacedName: n}] = struct{}{}
}

// put an object, or take it away.
func (w *world) put(c Change, d *dirty) error {
	n := client.ObjectKeyFromObject(c.Object)
	switch o := c.Object.(type) {
	case *gatewayv1alpha1.TailscaleServices:
		put(w.services, n, &o.Spec, c.Gone)
		d.ref(refServices, n)
	case *gatewayv1alpha1.TailscaleEndpoints:
		put(w.endpoints, n, &o.Spec, c.Gone)
		off := parse.OfflineEndpoints(o)
		put(w.offline, n, off, c.Gone || off == nil)
		d.ref(refEndpoints, n)
	case *tailnetv1alpha1.ProxySet:
		file(w, d, w.proxySets, refProxySet, n, &o.Spec, c.Gone, ir.Sibling(n, o.Spec.Endpoints))
	case *tailnetv1alpha1.ServiceAttachment:
		gone := c.Gone || o.Spec.Direction != tailnetv1alpha1.DirectionEgress
		file(w, d, w.attachments, refAttachments, n, o, gone, ir.Sibling(n, o.Spec.Services))
		d.ref(refAttachment, n)
	case *corev1.Service:
		put(w.kube, n, parse.ParseService(o), c.Gone)
		w.claim(filed{kind: refService, NamespacedName: n}, n, unless(c.Gone, addressesOfService(o)), d)
		d.ref(refService, n)
	case *discoveryv1.EndpointSlice:
		s := o.Labels[discoveryv1.LabelServiceName]
		file(w, d, w.slices, refSlices, n, parse.ParseEndpointSlice(o, func(a netip.Addr) bool { return w.dialling.refused(a) != "" }), c.Gone || s == "", ir.Sibling(n, s))
		w.claim(filed{kind: refSlices, NamespacedName: n}, ir.Sibling(n, s), unless(c.Gone, addressesOfSlice(o)), d)
	case *corev1.ConfigMap:
		put(w.configMaps, n, o.Data[parse.CAKey], c.Gone)
		d.ref(refConfigMap, n)
		if n == w.config {
			return w.putConfig(o, c.Gone, d)
		}
	case *gwapiv1.BackendTLSPolicy:
		w.putTLSPolicy(o, n, c.Gone, d)
	case *gwapiv1beta1.ReferenceGrant:
		put(w.grants, n, &o.Spec, c.Gone)
		d.ref(refGrants, types.NamespacedName{Namespace: n.Namespace})
		w.putGrant(d)
	case *gwapiv1.Gateway:
		put(w.abouts, n, parse.ParseGateway(o), c.Gone)
		d.gateways[n], d.identities[n] = struct{}{}, struct{}{}
		w.putGatewayCertificate(o, n, c.Gone, d)
		w.putParameters(o, n, c.Gone, d)
		w.moved(ir.PolicyTarget{NamespacedName: n}, d)
	case *gwapiv1.GatewayClass:
		w.putClass(o, c.Gone, d)
	case *gwapiv1.ListenerSet:
		w.putListenerSet(o, n, c.Gone, d)
	case *tailnetv1alpha1.Discovery:
		w.putDiscovery(o, n, c.Gone, d)
	case *gatewayv1alpha1.TailscaleGateway:
		w.putTailscaleGateway(o, n, c.Gone, d)
	case *gatewayv1alpha1.TailscaleRoutePolicy:
		w.putRoutePolicy(o, n, c.Gone, d)
	case *unstructured.Unstructured:
		return w.putUnstructured(o, n, c.Gone, d)
	default:
		return w.putRoute(c, d)
	}
	return nil
}

func put[T any](m map[types.NamespacedName]T, n types.NamespacedName, v T, gone bool) {
	if gone {
		delete(m, n)
		return
	}
	m[n] = v
}

// file an object of a group under what it shares with others.
func file[T any](w *world, d *dirty, g group[T], k refKind, n types.NamespacedName, v T, gone bool, shared ...types.NamespacedName) {
	id := filed{kind: k, NamespacedName: n}
	for _, s := range w.shared[id] {
		g.unset(s, n)
		d.ref(k, s)
	}
	delete(w.shared, id)
	if gone || len(shared) == 0 {
		return
	}
	w.shared[id] = shared
	for _, s := range shared {
		g.set(s, n, v)
		d.ref(k, s)
	}
}

// putRoute keeps a route that names one of ours. Of others it is kept where they attach,
// and anchors serve nothing.
func (w *world) putRoute(c Change, d *dirty) error {
	p := parse.ParseRouteObject(c.Object)
	if p == nil {
		return errors.Errorf("cannot keep a %T: nothing is made of it", c.Object)
	}
	w.putSite(p, c.Gone || ir.IsAnchor(c.Object), d)
	k := p.Route.Key
	if c.Gone || !p.NamesOurs() || ir.IsAnchor(c.Object) {
		if w.routes[k] != nil {
			delete(w.routes, k)
			d.routes[k], d.pins[k] = struct{}{}, struct{}{}
		}
		return nil
	}
	w.routes[k] = p
	d.routes[k], d.pins[k] = struct{}{}, struct{}{}
	return nil
}

// putListenerSet has routes that attach to it attach to its Gateway.
func (w *world) putListenerSet(o *gwapiv1.ListenerSet, n types.NamespacedName, gone bool, d *dirty) {
	g := types.NamespacedName{Namespace: n.Namespace, Name: string(o.Spec.ParentRef.Name)}
	if ns := o.Spec.ParentRef.Namespace; ns != nil {
		g.Namespace = string(*ns)
	}
	put(w.listenerSets, n, g, gone)
	w.movedSet(n, d)
	for k, p := range w.routes {
		if slices.ContainsFunc(p.Parents, func(of parse.Parent) bool { return of.ListenerSet && of.NamespacedName == n }) {
			d.routes[k], d.pins[k] = struct{}{}, struct{}{}
		}
	}
}

func (w *world) putUnstructured(o *unstructured.Unstructured, n types.NamespacedName, gone bool, d *dirty) error {
	gk := o.GroupVersionKind().GroupKind()
	if gk.Group == parse.GroupEnvoyGateway && gk.Kind == parse.KindEnvoyProxy {
		return w.putEnvoyProxy(o, n, gone, d)
	}
	if gk.Group != parse.GroupEnvoyGateway || gk.Kind != parse.KindTrafficPolicy {
		return errors.Errorf("cannot keep a %s: nothing is made of it", gk)
	}
	old := w.policies[n]
	delete(w.policies, n)
	var err error
	if !gone {
		var p *parse.TrafficPolicy
		if p, err = parse.ParseTrafficPolicy(o); err == nil {
			w.policies[n] = p
		}
	}
	for k, r := range w.routes {
		if w.concerns(old, r) || w.concerns(w.policies[n], r) {
			d.pins[k] = struct{}{}
		}
	}
	return errors.Wrapf(err, "cannot read %s %s", gk.Kind, n)
}

// A view is the world as one target sees it: what it looked up is remembered.
type view struct {
	*world
	seen map[ref]struct{}
}

func (w *world) view() *view { return &view{world: w, seen: map[ref]struct{}{}} }

func (v *view) saw(k refKind, n types.NamespacedName) types.NamespacedName {
	v.seen[ref{kind: k, NamespacedName: n}] = struct{}{}
	return n
}

// proxySet of a TailscaleEndpoints.
func (v *view) proxySet(n types.NamespacedName) *tailnetv1alpha1.ProxySetSpec {
	if of := v.proxySets.sorted(v.saw(refProxySet, n)); len(of) > 0 {
		return of[0]
	}
	return nil
}

// gateways that a route with these parents attaches to.
func (w *world) gateways(parents []parse.Parent) []types.NamespacedName {
	var out []types.NamespacedName
	for _, of := range parents {
		n, ok := of.NamespacedName, true
		if of.ListenerSet {
			n, ok = w.listenerSets[n]
		}
		if ok && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return out
}

// granted are the references that ReferenceGrants allow.
func (w *world) granted() map[ir.Grant]bool {
	out := map[ir.Grant]bool{}
	for n, g := range w.grants {
		for _, f := range g.From {
			k, ok := ir.RouteKinds[string(f.Kind)]
			if !ok || f.Group != gwapiv1.GroupName {
				continue
			}
			for _, t := range g.To {
				to := parse.BackendKind(string(t.Group), string(t.Kind))
				if to == ir.BackendOther {
					continue
				}
				r := ir.Grant{Kind: k, Namespace: string(f.Namespace), To: to, Object: types.NamespacedName{Namespace: n.Namespace}}
				if t.Name != nil {
					r.Object.Name = string(*t.Name)
				}
				out[r] = true
			}
		}
	}
	return out
}

// missing is what is said of an object that a route names and that is not there.
func missing(kind string, n types.NamespacedName) string {
	return fmt.Sprintf("%s %s does not exist; make it, or correct the backendRefs of the routes that name it", kind, n)
}
