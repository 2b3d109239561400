// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package attachments plans the ServiceAttachments of a Tailscale Service: what each of the selected
// endpoints serves, and which other clusters it reaches.
package attachments

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// PrefixRemote starts the resource names of attachments for egress. Their own names follow.
	PrefixRemote = "remote-"

	// suffixOwn ends the names of attachments of this cluster's separate service. Its dash makes them
	// end in a hash, so no other child of any service has such a name.
	suffixOwn = "own-service"
)

// Facts are what the attachments of a service follow from.
type Facts struct {
	// Succession is which endpoints stay, and what it follows from: the selection and the presence.
	succession.Succession

	// ServiceName is the name of the service in the tailnet.
	ServiceName string

	// Ports are the ports of the service and their backends. PortsErr is the error in the spec, if
	// there is one.
	Ports    []ports.Assignment
	PortsErr *ports.SpecError

	// Authorities are those that backends trust, by ConfigMap.
	Authorities map[string]backendtls.Authorities

	// MayMake means that the service may be created.
	MayMake bool

	// Drain means that this cluster hands the service to others.
	Drain bool
}

// Attach returns the services that each selected endpoints serves, and the other clusters' services
// that it reaches, by resource name. Existing attachments stay unchanged while the spec is invalid,
// unless proxies may no longer connect to a host, or serve a port.
//
// Attachments are created together with the VIPService, before it has an address: a child that
// Crossplane adds in a later run costs four writes of the composite. Crossplane then writes the
// references and conditions, reverts the conditions in the next run, whose cache lags, and sets
// them again.
func Attach(f Facts) map[string]*tailnetv1alpha1.ServiceAttachment {
	out := map[string]*tailnetv1alpha1.ServiceAttachment{}
	if f.Selection.Err != nil || f.Selection.SeveralTailnets() {
		for name, a := range f.Selection.Attachments {
			if f.KeepsAttachment(a) {
				out[name] = copyAttachment(f, a)
			}
		}
		return out
	}
	if f.Presence.Moving || f.Presence.Current == nil && !f.MayMake {
		return out
	}
	for _, p := range slices.Concat(f.Selection.Hosting(), f.Staying) {
		switch {
		case !selection.HasIngress(p):
		case !f.Selection.AllowsAll(p):
			for _, name := range f.AttachmentsBefore(p) {
				out[name] = copyAttachment(f, f.Selection.Attachments[name])
			}
		default:
			name := selection.PrefixAttachment + p.Spec.Endpoints
			keepOrBuild(f, out, name, len(f.Presence.Addresses()) > 0 || !succession.HasAddresses(f.Selection.Attachments[name]), func() *tailnetv1alpha1.ServiceAttachment {
				a := composeIngress(f, p)
				keepPorts(a, f.Selection.Attachments[name], f.Presence.TailnetPorts())
				return a
			})
			addOwn(f, out, p)
		}
		if !selection.HasDirection(p, tailnetv1alpha1.DirectionEgress) || ports.IsAll(f.Ports) {
			continue
		}
		if f.PortsErr == nil && len(ports.RemotePorts(f.Ports)) == 0 {
			continue
		}
		for _, c := range f.Presence.Remotes() {
			name := names.Child(f.Selection.Owner.Name, p.Spec.Endpoints, "remote", c.ClusterID)
			keepOrBuild(f, out, PrefixRemote+name, len(c.Addresses) > 0, func() *tailnetv1alpha1.ServiceAttachment {
				return composeRemote(f, name, p, c)
			})
		}
	}
	return out
}

// keepOrBuild adds an attachment: as it is composed if it can be, otherwise as it was observed.
func keepOrBuild(f Facts, out map[string]*tailnetv1alpha1.ServiceAttachment, name string, allowed bool, build func() *tailnetv1alpha1.ServiceAttachment) {
	if f.PortsErr == nil && allowed {
		out[name] = build()
		return
	}
	if old := f.Selection.Attachments[name]; old != nil && f.KeepsAttachment(old) {
		out[name] = copyAttachment(f, old)
	}
}

// addOwn adds the attachment of this cluster's separate service, by which other clusters reach the
// backends of this cluster. There is none without backends to reach.
func addOwn(f Facts, out map[string]*tailnetv1alpha1.ServiceAttachment, p tailnetv1alpha1.ProxySet) {
	if !f.Presence.Sharing || f.PortsErr == nil && (ports.IsAll(f.Ports) || len(ports.RemotePorts(f.Ports)) == 0) {
		return
	}
	name := succession.PrefixOwn + p.Spec.Endpoints
	keepOrBuild(f, out, name, len(f.Presence.OwnAddresses()) > 0, func() *tailnetv1alpha1.ServiceAttachment {
		a := composeOwn(f, p)
		keepPorts(a, f.Selection.Attachments[name], f.Presence.Current.Status.AtProvider.OwnPorts)
		return a
	})
}

// composeIngress returns the attachment by which proxies host the service.
func composeIngress(f Facts, p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := hosted(f, p, f.Ports)
	spec.ServiceName, spec.Addresses, spec.Drain = tailnetv1alpha1.ServiceName(f.ServiceName), f.Presence.Addresses(), f.Drain
	return attachment(f, names.Child(f.Selection.Owner.Name, p.Spec.Endpoints), spec)
}

// composeOwn returns the attachment by which proxies host this cluster's separate service. It
// matches that of the shared service, except for the ports of Gateways. Clients use the shared
// service's name, so certificates are for that name.
func composeOwn(f Facts, p tailnetv1alpha1.ProxySet) *tailnetv1alpha1.ServiceAttachment {
	spec := hosted(f, p, slices.DeleteFunc(slices.Clone(f.Ports), func(a ports.Assignment) bool { return !a.Remote() }))
	spec.ServiceName, spec.Addresses = tailnetv1alpha1.ServiceName(f.Presence.Current.Status.AtProvider.OwnServiceName), f.Presence.OwnAddresses()
	return attachment(f, names.Child(f.Selection.Owner.Name, p.Spec.Endpoints, suffixOwn), spec)
}

// hosted returns the attachment for some ports, without the service that has the ports.
func hosted(f Facts, p tailnetv1alpha1.ProxySet, assigned []ports.Assignment) tailnetv1alpha1.ServiceAttachmentSpec {
	attached := make([]tailnetv1alpha1.AttachmentPort, len(assigned))
	named := false
	for i, a := range assigned {
		attached[i] = a.Attached(f.Selection.Spec.LoadBalancing)
		named = named || a.TLS != nil
	}
	spec := tailnetv1alpha1.ServiceAttachmentSpec{
		Endpoints:   p.Spec.Endpoints,
		Services:    f.Selection.Owner.Name,
		Direction:   tailnetv1alpha1.DirectionIngress,
		Ports:       attached,
		HealthCheck: healthCheck(f.Selection.Spec.LoadBalancing),
		Authorities: ports.Trusted(f.Authorities, assigned),
	}
	// Other attachments do not use the name, and would be written again when it becomes known.
	if named {
		spec.DNSName = f.Presence.DNSName()
	}
	return spec
}

// composeRemote returns the attachment by which egress proxies reach another cluster's separate
// service. Its check is a connection, whatever the check of the backends: a proxy that terminates
// TLS would not understand a plain request.
func composeRemote(f Facts, name string, p tailnetv1alpha1.ProxySet, c tailnetv1alpha1.ServiceConsumer) *tailnetv1alpha1.ServiceAttachment {
	check := healthCheck(f.Selection.Spec.LoadBalancing)
	check.Path = ""
	spec := tailnetv1alpha1.ServiceAttachmentSpec{
		Endpoints:   p.Spec.Endpoints,
		Services:    f.Selection.Owner.Name,
		Direction:   tailnetv1alpha1.DirectionEgress,
		ServiceName: tailnetv1alpha1.ServiceName(c.ServiceName),
		Addresses:   c.Addresses,
		Ports:       ports.RemotePorts(f.Ports),
		HealthCheck: check,
		ClusterID:   c.ClusterID,
		Drain:       f.Drain && serves(c),
		Draining:    c.Draining,
	}
	// Their certificates are for the shared service's name, which Gateways request.
	named := slices.ContainsFunc(f.Ports, func(a ports.Assignment) bool { return a.Remote() && a.TLS != nil })
	if named {
		spec.DNSName = f.Presence.DNSName()
	}
	return attachment(f, name, spec)
}

// serves reports whether another cluster is known to serve, and does not drain.
func serves(c tailnetv1alpha1.ServiceConsumer) bool {
	return c.Online && !c.Draining && c.Health != nil && c.Health.Ready > 0 && c.Health.Score > 0
}

// copyAttachment returns an observed attachment unchanged.
func copyAttachment(f Facts, a *tailnetv1alpha1.ServiceAttachment) *tailnetv1alpha1.ServiceAttachment {
	return attachment(f, a.GetName(), a.Spec)
}

// attachment returns an attachment of a name.
func attachment(f Facts, name string, spec tailnetv1alpha1.ServiceAttachmentSpec) *tailnetv1alpha1.ServiceAttachment {
	l := map[string]string{
		meta.LabelServices:  f.Selection.Owner.Name,
		meta.LabelEndpoints: spec.Endpoints,
		meta.LabelDirection: strings.ToLower(string(spec.Direction)),
	}
	if provisions(spec) {
		l[meta.LabelProvision] = "true"
	}
	return &tailnetv1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Selection.Owner.Namespace, Labels: l},
		Spec:       spec,
	}
}

// provisions reports whether an attachment needs a port or the right to read a Secret before agents
// can use it.
func provisions(spec tailnetv1alpha1.ServiceAttachmentSpec) bool {
	if spec.Direction == tailnetv1alpha1.DirectionEgress {
		return true
	}
	for _, p := range spec.Ports {
		if p.TLS != nil && p.TLS.SecretName != "" {
			return true
		}
	}
	return false
}
