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

// readPermitted returns the Services of other namespaces that proxies may connect to, and whether
// Crossplane has read all objects that permit it.
func readPermitted(r *compose.Run, f facts) (permitted map[types.NamespacedName]bool, looked bool, err error) {
	permitted, looked = map[types.NamespacedName]bool{}, true
	// The function of a TailscaleGateway reports only a Gateway that it may share.
	for _, g := range f.gateways {
		if found := g.Status.Gateway; found != nil {
			permitted[types.NamespacedName{Namespace: found.Service.Namespace, Name: found.Service.Name}] = true
		}
	}
	for _, n := range f.foreign() {
		if permitted[n] {
			continue
		}
		yes, read, err := permits(r, f.owner, n, f.frontOf(n))
		if err != nil {
			return nil, false, err
		}
		permitted[n], looked = yes, looked && read
	}
	return permitted, looked, nil
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
	}
	return out
}

// frontOf returns the name of the TailscaleGateway whose Gateway may have a Service. A
// TailscaleGateway names itself in a label of the services that it composes, and users do in a
// backend. It is empty if nothing names one.
func (f facts) frontOf(n types.NamespacedName) string {
	if name := f.owner.Labels[meta.LabelGateway]; name != "" {
		return name
	}
	for _, b := range f.spec.Backends {
		if of, ok := refgrant.ServiceOf(b.Host); ok && of == n && b.Kind == gatewayv1alpha1.BackendKindGateway {
			return b.Name
		}
	}
	return ""
}

// permits reports whether proxies of TailscaleServices of the owner's namespace may connect to a
// Service of another one, and whether Crossplane has read all objects that decide it. front names
// the TailscaleGateway to look at if the Service is one that several Gateways share.
func permits(r *compose.Run, owner compose.Owner, n types.NamespacedName, front string) (permitted, looked bool, err error) {
	grants, granted, err := r.Grants(n.Namespace)
	if err != nil {
		return false, false, err
	}
	found, looked, err := compose.Lookup[corev1.Service](r, requireService(n))
	if err != nil || !granted || !looked {
		return false, false, err
	}
	if grants.PermitService(refgrant.TailscaleServices(owner.Namespace), n) {
		return true, true, nil
	}
	if len(found) == 0 {
		return false, true, nil
	}
	l := found[0].GetLabels()
	gateway := types.NamespacedName{Namespace: l[meta.LabelOwningGatewayNamespace], Name: l[meta.LabelOwningGatewayName]}
	switch {
	case gateway.Name != "" && gateway.Namespace != "":
		return permitsGateway(r, owner, gateway)
	case l[meta.LabelOwningGatewayClass] != "" && front != "":
		return fronts(r, owner, front, n)
	}
	return false, true, nil
}

// permitsGateway reports whether TailscaleGateways of the owner's namespace may share a Gateway, and
// whether Crossplane has read the grants that decide it.
func permitsGateway(r *compose.Run, owner compose.Owner, gateway types.NamespacedName) (permitted, looked bool, err error) {
	if gateway.Namespace == owner.Namespace {
		return true, true, nil
	}
	grants, looked, err := r.Grants(gateway.Namespace)
	return looked && grants.PermitGateway(owner.Namespace, gateway), looked, err
}

// fronts reports whether a TailscaleGateway of the owner's namespace has found a Service in front of
// its Gateway, which it may share, and whether Crossplane has read it. The labels of a Service that
// several Gateways share do not name them.
func fronts(r *compose.Run, owner compose.Owner, name string, n types.NamespacedName) (fronts, looked bool, err error) {
	found, looked, err := compose.Lookup[gatewayv1alpha1.TailscaleGateway](r, requireGateway(owner.Namespace, name))
	if err != nil || len(found) == 0 {
		return false, looked, err
	}
	g := found[0].Status.Gateway
	return g != nil && g.Service.Namespace == n.Namespace && g.Service.Name == n.Name, true, nil
}

// requireService returns the requirement of a Service of another namespace, for its labels.
func requireService(n types.NamespacedName) compose.Requirement {
	return compose.Requirement{Key: "service-" + n.Namespace + "-" + n.Name, APIVersion: "v1", Kind: "Service", Namespace: n.Namespace, Name: n.Name}
}

// permits reports whether proxies may connect to a host.
func (f facts) permits(host string) bool {
	n, ok := refgrant.ServiceOf(host)
	return !ok || n.Namespace == f.owner.Namespace || f.permitted[n]
}

// checkHost returns an error if proxies may not connect to the host of a backend.
func (f facts) checkHost(b gatewayv1alpha1.Backend) *specError {
	if f.permits(b.Host) {
		return nil
	}
	n, _ := refgrant.ServiceOf(b.Host)
	return &specError{reason: meta.ReasonRefNotPermitted, message: fmt.Sprintf(
		"host %s of backend %q is of Service %s, and no ReferenceGrant in namespace %s permits it; create one there, from group %s, kind %s, namespace %s, to group \"\", kind Service, name %s",
		b.Host, b.Name, n, n.Namespace, gatewayv1alpha1.Group, gatewayv1alpha1.TailscaleServicesKind, f.owner.Namespace, n.Name)}
}

// permitsAttachment reports whether proxies may connect to all hosts of an attachment.
func (f facts) permitsAttachment(a *tailnetv1alpha1.ServiceAttachment) bool {
	return !slices.ContainsFunc(hostsOf(a.Spec), func(host string) bool { return !f.permits(host) })
}

// forbidden returns the resource names of existing attachments with a host that proxies may not
// connect to, sorted.
func (f facts) forbidden() []string {
	var out []string
	for name, a := range f.attachments {
		if !f.permitsAttachment(a) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
