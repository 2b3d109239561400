// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package grants reads whether proxies may connect to Services of other namespaces.
//
// They may only if that namespace permits it: by a ReferenceGrant to the Service, or, for the Service in
// front of a Gateway, by the permission that a TailscaleGateway needs for the Gateway. This applies to
// the spec and to existing ServiceAttachments, which would otherwise stay while the spec is invalid.
package grants

import (
	"cmp"
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

// A Permission is what is known of the permission to connect to a Service of another namespace.
type Permission int

// Permissions of a Service.
const (
	// Denied means that proxies may not connect.
	Denied Permission = iota

	// Permitted means that they may.
	Permitted

	// Lost means that the Service does not exist, and that a Gateway had it which may be shared: Envoy
	// Gateway deletes the Service with the Gateway, and creates it again. Existing attachments stay, so
	// that they serve again then, and are judged again.
	Lost
)

// decide returns whether a permission is given.
func decide(allowed bool) Permission {
	if allowed {
		return Permitted
	}
	return Denied
}

// Permissions are those of a namespace's proxies to connect to Services of other namespaces.
type Permissions struct {
	Namespace string
	Services  map[types.NamespacedName]Permission
}

// Host returns the permission to connect to a host.
func (p Permissions) Host(host string) Permission {
	n, ok := refgrant.ServiceOf(host)
	if !ok || n.Namespace == p.Namespace {
		return Permitted
	}
	return p.Services[n]
}

// Facts are what names Services of other namespaces.
type Facts struct {
	Owner    compose.Owner
	Backends []gatewayv1alpha1.Backend

	// Attachments are the existing ones, by resource name.
	Attachments map[string]*tailnetv1alpha1.ServiceAttachment

	// Gateways are the TailscaleGateways that are backends, by name. Missing ones are omitted.
	Gateways map[string]*gatewayv1alpha1.TailscaleGateway
}

// Read returns the permissions to connect to Services of other namespaces, and whether Crossplane has
// read all objects that decide them.
func Read(r *compose.Run, f Facts) (permissions Permissions, looked bool, err error) {
	permissions, looked = Permissions{Namespace: f.Owner.Namespace, Services: map[types.NamespacedName]Permission{}}, true
	// The function of a TailscaleGateway reports only a Gateway that it may share.
	for _, g := range f.Gateways {
		if found := g.Status.Gateway; found != nil {
			permissions.Services[types.NamespacedName{Namespace: found.Service.Namespace, Name: found.Service.Name}] = Permitted
		}
	}
	for _, n := range f.foreign() {
		if permissions.Services[n] == Permitted {
			continue
		}
		p, read, err := permits(r, f.Owner, n, f.frontOf(n))
		if err != nil {
			return Permissions{}, false, err
		}
		permissions.Services[n], looked = p, looked && read
	}
	return permissions, looked, nil
}

// foreign returns the Services of other namespaces that backends and existing attachments name by
// their hosts, sorted.
func (f Facts) foreign() []types.NamespacedName {
	out := map[types.NamespacedName]bool{}
	add := func(host string) {
		if n, ok := refgrant.ServiceOf(host); ok && n.Namespace != f.Owner.Namespace {
			out[n] = true
		}
	}
	for _, b := range f.Backends {
		add(b.Host)
	}
	for _, a := range f.Attachments {
		for _, host := range HostsOf(a.Spec) {
			add(host)
		}
	}
	return slices.SortedFunc(maps.Keys(out), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// HostsOf returns the hosts that proxies connect to for an attachment.
func HostsOf(spec tailnetv1alpha1.ServiceAttachmentSpec) []string {
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
func (f Facts) frontOf(n types.NamespacedName) string {
	if name := f.Owner.Labels[meta.LabelGateway]; name != "" {
		return name
	}
	for _, b := range f.Backends {
		if service, _ := refgrant.ServiceOf(b.Host); b.Kind == gatewayv1alpha1.BackendKindGateway && (b.Host == "" || service == n) {
			return b.Name
		}
	}
	return ""
}

// permits returns the permission for proxies of TailscaleServices of the owner's namespace to connect to
// a Service of another one, and whether Crossplane has read all objects that decide it. front names
// the TailscaleGateway to look at if the Service does not name its Gateway.
func permits(r *compose.Run, owner compose.Owner, n types.NamespacedName, front string) (p Permission, looked bool, err error) {
	grants, granted, err := r.Grants(n.Namespace)
	if err != nil {
		return Denied, false, err
	}
	found, looked, err := compose.Lookup[corev1.Service](r, requireService(n))
	if err != nil || !granted || !looked {
		return Denied, false, err
	}
	if grants.PermitService(refgrant.TailscaleServices(owner.Namespace), n) {
		return Permitted, true, nil
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
	return Denied, true, nil
}

// permitsGateway returns the permission for TailscaleGateways of the owner's namespace to share a
// Gateway, and whether Crossplane has read the grants that decide it.
func permitsGateway(r *compose.Run, owner compose.Owner, gateway types.NamespacedName) (p Permission, looked bool, err error) {
	if gateway.Namespace == owner.Namespace {
		return Permitted, true, nil
	}
	grants, looked, err := r.Grants(gateway.Namespace)
	return decide(looked && grants.PermitGateway(owner.Namespace, gateway)), looked, err
}

// fronts permits a Service that a TailscaleGateway of the owner's namespace has found in front of its
// Gateway, which it may share. The labels of a Service that several Gateways share do not name them.
func fronts(r *compose.Run, owner compose.Owner, name string, n types.NamespacedName) (p Permission, looked bool, err error) {
	front, looked, err := lookupFront(r, owner, name)
	if err != nil || front == nil {
		return Denied, looked, err
	}
	g := front.Status.Gateway
	return decide(g != nil && g.Service.Namespace == n.Namespace && g.Service.Name == n.Name), true, nil
}

// loses returns what is known of a Service that does not exist: it is lost if a TailscaleGateway that
// may share its Gateway names it.
func loses(r *compose.Run, owner compose.Owner, name string) (p Permission, looked bool, err error) {
	front, looked, err := lookupFront(r, owner, name)
	if err != nil || front == nil {
		return Denied, looked, err
	}
	p, looked, err = permitsGateway(r, owner, front.GatewayName())
	if p == Permitted {
		p = Lost
	}
	return p, looked, err
}

// lookupFront returns a TailscaleGateway of the owner's namespace, and whether Crossplane has looked for
// it. It is nil if there is none.
func lookupFront(r *compose.Run, owner compose.Owner, name string) (front *gatewayv1alpha1.TailscaleGateway, looked bool, err error) {
	if name == "" {
		return nil, true, nil
	}
	found, looked, err := compose.Lookup[gatewayv1alpha1.TailscaleGateway](r, RequireGateway(owner.Namespace, name))
	if err != nil || len(found) == 0 {
		return nil, looked, err
	}
	return &found[0], true, nil
}

// requireService returns the requirement of a Service of another namespace, for its labels.
func requireService(n types.NamespacedName) compose.Requirement {
	return compose.Requirement{Key: "service-" + n.Namespace + "-" + n.Name, APIVersion: "v1", Kind: "Service", Namespace: n.Namespace, Name: n.Name}
}

// RequireGateway returns the requirement of a TailscaleGateway. Its status contains its Gateway's
// Service and listeners. One with tailnets also changes with the services that it composes: those
// name the host, and do not require it.
func RequireGateway(namespace, name string) compose.Requirement {
	return compose.Requirement{
		Key:        "gateway-" + name,
		APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(),
		Kind:       gatewayv1alpha1.TailscaleGatewayKind,
		Namespace:  namespace,
		Name:       name,
	}
}
