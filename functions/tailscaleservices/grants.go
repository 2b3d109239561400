// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// Proxies connect to a Service of another namespace only if that namespace permits it: by a
// ReferenceGrant to the Service, or, for the Service in front of a Gateway, by the permission that a
// TailscaleGateway needs for the Gateway. This applies to the spec and to existing
// ServiceAttachments, which would otherwise stay while the spec is invalid.

// A permission is what is known of the permission to connect to a Service of another namespace.
type permission int

const (
	denied permission = iota
	permitted

	// lost means that the Service does not exist, and that a Gateway had it which may be shared: Envoy
	// Gateway deletes the Service with the Gateway, and creates it again. Existing attachments stay, so
	// that they serve again then, and are judged again.
	lost
)

// decide returns whether a permission is given.
func decide(allowed bool) permission {
	if allowed {
		return permitted
	}
	return denied
}

// readPermissions returns the permissions to connect to Services of other namespaces, and whether
// Crossplane has read all objects that decide them.
func readPermissions(r *compose.Run, f facts) (permissions map[types.NamespacedName]permission, looked bool, err error) {
	permissions, looked = map[types.NamespacedName]permission{}, true
	// The function of a TailscaleGateway reports only a Gateway that it may share.
	for _, g := range f.gateways {
		if found := g.Status.Gateway; found != nil {
			permissions[types.NamespacedName{Namespace: found.Service.Namespace, Name: found.Service.Name}] = permitted
		}
	}
	for _, n := range f.foreign() {
		if permissions[n] == permitted {
			continue
		}
		p, read, err := permits(r, f.owner, n, f.frontOf(n))
		if err != nil {
			return nil, false, err
		}
		permissions[n], looked = p, looked && read
	}
	return permissions, looked, nil
}

// foreign returns the Services of other namespaces that backends and existing attachments name by
// their hosts, sorted.
func (f facts) foreign() []types.NamespacedName {
	out := map[types.NamespacedName]bool{}
	add := func(host string) {
		if n, ok := refgrant.ServiceOf(host); ok && n.Namespace != f.owner.Namespace {
			out[n] = true
		}
	}
	for _, b := range f.spec.Backends {
		add(b.Host)
	}
	for _, a := range f.attachments {
		for _, host := range hostsOf(a.Spec) {
			add(host)
		}
	}
	return slices.SortedFunc(maps.Keys(out), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// hostsOf returns the hosts that proxies connect to for an attachment.
func hostsOf(spec tailnetv1alpha1.ServiceAttachmentSpec) []string {
	var out []string
	for _, p := range spec.Ports {
		if p.Backend != nil {
			out = append(out, p.Backend.Host)
		}
		for _, b := range p.Backends {
			out = append(out, b.Host)
		}
	}
	return out
}

// frontOf returns the name of the TailscaleGateway whose Gateway may have a Service. A
// TailscaleGateway names itself in a label of the services that it composes, and users do in a
// backend, with a host or without one. It is empty if nothing names one.
func (f facts) frontOf(n types.NamespacedName) string {
	if name := f.owner.Labels[meta.LabelGateway]; name != "" {
		return name
	}
	for _, b := range f.spec.Backends {
		if service, _ := refgrant.ServiceOf(b.Host); b.Kind == gatewayv1alpha1.BackendKindGateway && (b.Host == "" || service == n) {
			return b.Name
		}
	}
	return ""
}

// permits returns the permission for proxies of TailscaleServices of the owner's namespace to connect to
// a Service of another one, and whether Crossplane has read all objects that decide it. front names
// the TailscaleGateway to look at if the Service does not name its Gateway.
func permits(r *compose.Run, owner compose.Owner, n types.NamespacedName, front string) (p permission, looked bool, err error) {
	grants, granted, err := r.Grants(n.Namespace)
	if err != nil {
		return denied, false, err
	}
	found, looked, err := compose.Lookup[corev1.Service](r, requireService(n))
	if err != nil || !granted || !looked {
		return denied, false, err
	}
	if grants.PermitService(refgrant.TailscaleServices(owner.Namespace), n) {
		return permitted, true, nil
	}
	if len(found) == 0 {
		return loses(r, owner, front)
	}
	l := found[0].GetLabels()
	gateway := types.NamespacedName{Namespace: l[meta.LabelOwningGatewayNamespace], Name: l[meta.LabelOwningGatewayName]}
	switch {
	case gateway.Name != "" && gateway.Namespace != "":
		return permitsGateway(r, owner, gateway)
	case l[meta.LabelOwningGatewayClass] != "":
		return fronts(r, owner, front, n)
	}
	return denied, true, nil
}

// permitsGateway returns the permission for TailscaleGateways of the owner's namespace to share a
// Gateway, and whether Crossplane has read the grants that decide it.
func permitsGateway(r *compose.Run, owner compose.Owner, gateway types.NamespacedName) (p permission, looked bool, err error) {
	if gateway.Namespace == owner.Namespace {
		return permitted, true, nil
	}
	grants, looked, err := r.Grants(gateway.Namespace)
	return decide(looked && grants.PermitGateway(owner.Namespace, gateway)), looked, err
}

// fronts permits a Service that a TailscaleGateway of the owner's namespace has found in front of its
// Gateway, which it may share. The labels of a Service that several Gateways share do not name them.
func fronts(r *compose.Run, owner compose.Owner, name string, n types.NamespacedName) (p permission, looked bool, err error) {
	front, looked, err := lookupFront(r, owner, name)
	if err != nil || front == nil {
		return denied, looked, err
	}
	g := front.Status.Gateway
	return decide(g != nil && g.Service.Namespace == n.Namespace && g.Service.Name == n.Name), true, nil
}

// loses returns what is known of a Service that does not exist: it is lost if a TailscaleGateway that
// may share its Gateway names it.
func loses(r *compose.Run, owner compose.Owner, name string) (p permission, looked bool, err error) {
	front, looked, err := lookupFront(r, owner, name)
	if err != nil || front == nil {
		return denied, looked, err
	}
	p, looked, err = permitsGateway(r, owner, front.GatewayName())
	if p == permitted {
		p = lost
	}
	return p, looked, err
}

// lookupFront returns a TailscaleGateway of the owner's namespace, and whether Crossplane has looked for
// it. It is nil if there is none.
func lookupFront(r *compose.Run, owner compose.Owner, name string) (front *gatewayv1alpha1.TailscaleGateway, looked bool, err error) {
	if name == "" {
		return nil, true, nil
	}
	found, looked, err := compose.Lookup[gatewayv1alpha1.TailscaleGateway](r, requireGateway(owner.Namespace, name))
	if err != nil || len(found) == 0 {
		return nil, looked, err
	}
	return &found[0], true, nil
}

// requireService returns the requirement of a Service of another namespace, for its labels.
func requireService(n types.NamespacedName) compose.Requirement {
	return compose.Requirement{Key: "service-" + n.Namespace + "-" + n.Name, APIVersion: "v1", Kind: "Service", Namespace: n.Namespace, Name: n.Name}
}

// permission returns the permission for proxies to connect to a host.
func (f facts) permission(host string) permission {
	n, ok := refgrant.ServiceOf(host)
	if !ok || n.Namespace == f.owner.Namespace {
		return permitted
	}
	return f.permissions[n]
}

// checkHost returns an error if proxies may not connect to the host of a backend.
func (f facts) checkHost(b gatewayv1alpha1.Backend) *specError {
	n, _ := refgrant.ServiceOf(b.Host)
	switch f.permission(b.Host) {
	case permitted:
		return nil
	case lost:
		return &specError{reason: meta.ReasonGatewayNotValid, message: fmt.Sprintf(
			"host %s of backend %q is of Service %s, which does not exist; look at the conditions of the TailscaleGateway", b.Host, b.Name, n)}
	}
	return &specError{reason: meta.ReasonRefNotPermitted, message: fmt.Sprintf(
		"host %s of backend %q is of Service %s, and no ReferenceGrant in namespace %s permits it; create one there, from group %s, kind %s, namespace %s, to group \"\", kind Service, name %s",
		b.Host, b.Name, n, n.Namespace, gatewayv1alpha1.Group, gatewayv1alpha1.TailscaleServicesKind, f.owner.Namespace, n.Name)}
}

// keepsAttachment reports whether no host of an attachment is denied to proxies, nor one of its ports.
func (f facts) keepsAttachment(a *tailnetv1alpha1.ServiceAttachment) bool {
	return f.mayServeAttachment(a) && !slices.ContainsFunc(hostsOf(a.Spec), func(host string) bool { return f.permission(host) == denied })
}

// forbidden returns the resource names of existing attachments with a host that proxies may not
// connect to, or a port that they may not serve, sorted.
func (f facts) forbidden() []string {
	var out []string
	for name, a := range f.attachments {
		if !f.keepsAttachment(a) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
