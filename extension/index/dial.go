// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// Envoys connect to hosts that tenants name: in a backend of kind External, and in an
// externalTarget outside of the tailnet. NetworkPolicies permit Envoys many connections that
// they deny to the tenants' pods, so each address is checked here, after each change of a
// name's addresses.

// A DialPolicy describes the hosts that tenants may name as targets of Envoys without a
// proxy. The zero value allows no host.
type DialPolicy struct {
	// Direct allows hosts outside of the tailnet.
	Direct bool

	// Loopback reports that Envoys run on a machine of the user, where loopback addresses
	// are allowed like others. Envoy Gateway has the same rule for its Backends
	// (internal/gatewayapi/backend.go).
	Loopback bool
}

// refused returns why connections to an address are refused. It is empty if they are
// allowed.
func (d DialPolicy) refused(a netip.Addr) string {
	if d.Loopback && a.Unmap().IsLoopback() {
		return ""
	}
	return address.Refused(a)
}

// refusedHost returns why connections to a host are refused before it is looked up. It is
// empty if they are allowed.
func (d DialPolicy) refusedHost(host string) string {
	reason := address.RefusedHost(host)
	if a, err := netip.ParseAddr(host); err == nil {
		reason = d.refused(a)
	}
	if d.Loopback && reason == address.Localhost {
		return ""
	}
	return reason
}

// endpointsOf returns the referrer for TailscaleEndpoints of a namespace.
func endpointsOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleEndpointsKind, Namespace: namespace}
}

// An addressOwner is an object with an address, and the Service that the object belongs to. The
// Service has no name for an EndpointSlice without one.
type addressOwner struct {
	owner   grouped
	service types.NamespacedName
}

// owners are the objects with an address in the cluster, and the addresses by object.
type owners struct {
	byAddress map[netip.Addr][]addressOwner
	addresses map[grouped][]netip.Addr
}

func newOwners() owners {
	return owners{byAddress: map[netip.Addr][]addressOwner{}, addresses: map[grouped][]netip.Addr{}}
}

// setAddresses replaces the addresses of an object, and marks the targets that depend on one of the
// old or new addresses. It does nothing if Envoys may not connect to any address.
func (all *objects) setAddresses(owner grouped, service types.NamespacedName, addresses []netip.Addr, p *pending) {
	if !all.dialPolicy.Direct {
		return
	}
	o := &all.owners
	for _, a := range o.addresses[owner] {
		o.byAddress[a] = slices.DeleteFunc(o.byAddress[a], func(c addressOwner) bool { return c.owner == owner })
		if len(o.byAddress[a]) == 0 {
			delete(o.byAddress, a)
		}
		p.ref(refAddress, types.NamespacedName{Name: a.String()})
	}
	delete(o.addresses, owner)
	for _, a := range addresses {
		o.byAddress[a] = append(o.byAddress[a], addressOwner{owner: owner, service: service})
		p.ref(refAddress, types.NamespacedName{Name: a.String()})
	}
	if len(addresses) > 0 {
		o.addresses[owner] = addresses
	}
}

// addressesOfService returns the addresses of a Service within the cluster's network, which are
// its own: the API server gives each to one Service. It leaves out the address of a load balancer,
// which is for clients outside, and external IPs: everybody can write any address there, and would
// take it away from who names it.
func addressesOfService(o *corev1.Service) []netip.Addr {
	return parseAddresses(slices.Concat([]string{o.Spec.ClusterIP}, o.Spec.ClusterIPs))
}

// sliceController is the manager of EndpointSlices of Services with a selector, which have the
// addresses of pods. It deletes others that name it and belong to such a Service
// (k8s.io/endpointslice, Reconciler).
const sliceController = "endpointslice-controller.k8s.io"

// addressesOfSlice returns the addresses of an EndpointSlice that Kubernetes writes. Others have
// the addresses that their writer wants.
func addressesOfSlice(o *discoveryv1.EndpointSlice) []netip.Addr {
	if o.Labels[discoveryv1.LabelManagedBy] != sliceController {
		return nil
	}
	var out []string
	for _, e := range o.Endpoints {
		out = append(out, e.Addresses...)
	}
	return parseAddresses(out)
}

// unlessGone returns the addresses of an object that is not deleted.
func unlessGone(deleted bool, addresses []netip.Addr) []netip.Addr {
	if deleted {
		return nil
	}
	return addresses
}

// parseAddresses returns addresses in canonical form, each once. It skips strings that are
// not addresses, such as None.
func parseAddresses(values []string) []netip.Addr {
	out := make([]netip.Addr, 0, len(values))
	for _, s := range values {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a.Unmap())
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// A refusal says why Envoys may not connect to a host or to one of its addresses. It is
// shown to people, and empty if all connections are allowed.
type refusal string

// refuse returns why objects of a kind may not make Envoy connect to an address.
func (v *view) refuse(referrer refgrant.Referrer, a netip.Addr) refusal {
	if reason := v.dialPolicy.refused(a); reason != "" {
		return refusal(fmt.Sprintf("%s is refused: it is %s, which Envoy must not connect to; name another host", a, reason))
	}
	forms := []netip.Addr{a}
	if embedded, ok := address.Embedded(a); ok {
		forms = append(forms, embedded)
	}
	foreign := map[string][]types.NamespacedName{}
	for _, f := range forms {
		v.lookup(refAddress, types.NamespacedName{Name: f.String()})
		for _, c := range v.owners.byAddress[f] {
			if c.service.Namespace != referrer.Namespace && v.owns(c) {
				foreign[c.service.Namespace] = append(foreign[c.service.Namespace], c.service)
			}
		}
	}
	var out refusal
	var service types.NamespacedName
	for _, services := range foreign {
		slices.SortFunc(services, ir.CompareNames)
		if !slices.ContainsFunc(services, func(n types.NamespacedName) bool { return v.mayName(referrer, n) }) && (out == "" || ir.CompareNames(services[0], service) < 0) {
			service = services[0]
			out = ungranted(a.String(), referrer, service)
		}
	}
	return out
}

// owns reports whether the addresses of an object are its Service's own. The controller of
// EndpointSlices leaves those of a Service without a selector alone, also if another client wrote them.
func (v *view) owns(c addressOwner) bool {
	if c.owner.kind != refSlices {
		return true
	}
	s := v.kubeServices[v.lookup(refService, c.service)]
	return s != nil && s.Selects
}

// refuseName returns why objects of a kind may not make Envoy connect to a host name, such
// as that of a Service of another namespace without a ReferenceGrant.
func (v *view) refuseName(referrer refgrant.Referrer, host string) refusal {
	if reason := v.dialPolicy.refusedHost(host); reason != "" {
		return refusal(fmt.Sprintf("%s is refused: it is %s, which Envoy must not connect to; name another host", host, reason))
	}
	if n, ok := refgrant.ServiceOf(host); ok && !v.mayName(referrer, n) {
		return ungranted(host, referrer, n)
	}
	return ""
}

// mayName reports whether objects of a kind may name a Service.
func (v *view) mayName(referrer refgrant.Referrer, n types.NamespacedName) bool {
	if n.Namespace != referrer.Namespace {
		v.lookup(refGrants, types.NamespacedName{Namespace: n.Namespace})
	}
	return v.grants.PermitService(referrer, n)
}

// ungranted returns the refusal of a host that belongs to a Service of another namespace.
func ungranted(host string, referrer refgrant.Referrer, n types.NamespacedName) refusal {
	owner, name := "namespace "+n.Namespace, ""
	if n.Name != "" {
		owner, name = "Service "+n.String(), " name "+n.Name
	}
	return refusal(fmt.Sprintf("%s is refused: it is of %s; add a ReferenceGrant to namespace %s, from kind %s (group %s) of namespace %s to kind Service (group \"\")%s",
		host, owner, n.Namespace, referrer.Kind, referrer.Group, referrer.Namespace, name))
}

// direct returns the endpoints of a host for a target, and records refused addresses in the
// target. The problem says why there are no endpoints.
func (v *view) direct(t *ir.Target, referrer refgrant.Referrer, host string, port int32) ([]zonedEndpoint, string) {
	out, problem, refused := v.hostEndpoints(t, referrer, host, port)
	if refused != "" {
		t.Refused = append(t.Refused, string(refused))
	}
	return out, cmp.Or(problem, string(refused))
}

// hostEndpoints returns the addresses of a host that Envoys may connect to, and the problem
// or refusal of the others. Package dns looks up names; until it has done so once, the target is
// pending.
func (v *view) hostEndpoints(t *ir.Target, referrer refgrant.Referrer, host string, port int32) (out []zonedEndpoint, problem string, refused refusal) {
	if !v.dialPolicy.Direct {
		return nil, "", refusal(fmt.Sprintf("%s is refused: Envoy would connect to it by itself, outside of the tailnet, which is turned off; have the platform team set directTargets to true in the extension's chart", host))
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if refused = v.refuse(referrer, a); refused != "" {
			return nil, "", refused
		}
		return []zonedEndpoint{{Endpoint: ir.Endpoint{Address: a.Unmap().String(), Port: port, Weight: 1}}}, "", ""
	}
	host = ir.CanonicalHost(host)
	if refused = v.refuseName(referrer, host); refused != "" {
		return nil, "", refused
	}
	addresses, resolved := v.hosts[v.lookup(refHost, types.NamespacedName{Name: host}).Name]
	t.Pending = t.Pending || !resolved
	if len(addresses) == 0 {
		return nil, fmt.Sprintf("the address of %s is not known; look whether the name exists, or set an address", host), ""
	}
	for _, s := range addresses {
		a, err := netip.ParseAddr(s)
		if err != nil {
			continue
		}
		if reason := v.refuse(referrer, a); reason != "" {
			refused = cmp.Or(refused, refusal(fmt.Sprintf("%s has an address that cannot be used: %s", host, reason)))
			continue
		}
		out = append(out, zonedEndpoint{Endpoint: ir.Endpoint{Address: s, Port: port, Hostname: host, Weight: 1}})
	}
	return out, "", refused
}
