// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"slices"

	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// read reads all objects that concern one TailscaleGateway.
func (rd *reader) read(ctx context.Context, n types.NamespacedName) (*view, error) {
	v := &view{}
	if !rd.has(kindReport) || !rd.has(routes.KindTailscaleGateway) {
		return v, nil
	}
	report := &tailnetv1alpha1.GatewayReport{}
	found, err := rd.get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: names.GatewayReport(n.Name)}, report)
	if err != nil {
		return nil, errors.Wrap(err, "cannot get GatewayReport")
	}
	if found {
		v.report = report
	}
	if err := rd.readGenerated(ctx, v, n); err != nil {
		return nil, err
	}
	o := &gatewayv1alpha1.TailscaleGateway{}
	found, err = rd.get(ctx, n, o)
	if err != nil {
		return nil, errors.Wrap(err, "cannot get TailscaleGateway")
	}
	if found && !rd.manages(o) {
		v.foreign = true
		return v, nil
	}
	if !found || o.GetDeletionTimestamp() != nil || len(o.Spec.Tailnets) == 0 {
		return v, nil
	}
	v.Object, v.Permitted, v.extension = o, rd.options.Permitted, tailnetv1alpha1.ReportedExtension{Version: rd.options.Version}
	if err := rd.readEndpoints(ctx, v, n); err != nil {
		return nil, err
	}
	if err := rd.readServices(ctx, v, n); err != nil {
		return nil, err
	}
	if err := rd.readLocal(ctx, v); err != nil {
		return nil, err
	}
	if err := rd.readNeighborhood(ctx, v); err != nil {
		return nil, err
	}
	if err := rd.readGrants(ctx, v); err != nil {
		return nil, err
	}
	if err := rd.readPolicies(ctx, v); err != nil {
		return nil, err
	}
	return v, rd.readGateway(ctx, v)
}

// readGenerated reads the existing generated objects.
func (rd *reader) readGenerated(ctx context.Context, v *view, n types.NamespacedName) error {
	match := client.MatchingFields{byOwner: n.String()}
	if rd.has(routes.KindHTTPRoute) {
		l := &gwapiv1.HTTPRouteList{}
		if err := rd.list(ctx, l, match); err != nil {
			return errors.Wrap(err, "cannot list generated HTTPRoutes")
		}
		for i := range l.Items {
			v.Generated = append(v.Generated, &l.Items[i])
		}
	}
	if rd.has(routes.KindGRPCRoute) {
		l := &gwapiv1.GRPCRouteList{}
		if err := rd.list(ctx, l, match); err != nil {
			return errors.Wrap(err, "cannot list generated GRPCRoutes")
		}
		for i := range l.Items {
			v.Generated = append(v.Generated, &l.Items[i])
		}
	}
	if rd.has(routes.KindTLSPolicy) {
		l := &gwapiv1.BackendTLSPolicyList{}
		if err := rd.list(ctx, l, match); err != nil {
			return errors.Wrap(err, "cannot list generated BackendTLSPolicies")
		}
		for i := range l.Items {
			v.policies = append(v.policies, &l.Items[i])
		}
	}
	return nil
}

// readEndpoints reads the TailscaleEndpoints that discover for the TailscaleGateway.
func (rd *reader) readEndpoints(ctx context.Context, v *view, n types.NamespacedName) error {
	if !rd.has(kindEndpoints) {
		return nil
	}
	l := &gatewayv1alpha1.TailscaleEndpointsList{}
	if err := rd.list(ctx, l, client.InNamespace(n.Namespace), client.MatchingFields{byOwner: n.String()}); err != nil {
		return errors.Wrap(err, "cannot list TailscaleEndpoints")
	}
	for i := range l.Items {
		v.Endpoints = append(v.Endpoints, &l.Items[i])
	}
	return nil
}

// readServices reads the TailscaleServices that are composed for the TailscaleGateway.
func (rd *reader) readServices(ctx context.Context, v *view, n types.NamespacedName) error {
	if !rd.has(routes.KindServices) {
		return nil
	}
	l := &gatewayv1alpha1.TailscaleServicesList{}
	if err := rd.list(ctx, l, client.InNamespace(n.Namespace), client.MatchingFields{byOwner: n.String()}); err != nil {
		return errors.Wrap(err, "cannot list TailscaleServices")
	}
	for i := range l.Items {
		v.Services = append(v.Services, &l.Items[i])
	}
	return nil
}

// readLocal reads the objects that a selector may select, if there is a selector.
func (rd *reader) readLocal(ctx context.Context, v *view) error {
	if !slices.ContainsFunc(v.Object.Spec.Tailnets, routes.HasSelector) || !rd.has(routes.KindServices) || !rd.has(kindEndpoints) {
		return nil
	}
	endpoints, services := &gatewayv1alpha1.TailscaleEndpointsList{}, &gatewayv1alpha1.TailscaleServicesList{}
	if err := rd.list(ctx, endpoints, client.InNamespace(v.Object.Namespace)); err != nil {
		return errors.Wrap(err, "cannot list TailscaleEndpoints")
	}
	for i := range endpoints.Items {
		if e := &endpoints.Items[i]; isLocal(e) {
			v.Local.Endpoints = append(v.Local.Endpoints, e)
		}
	}
	if err := rd.list(ctx, services, client.InNamespace(v.Object.Namespace)); err != nil {
		return errors.Wrap(err, "cannot list TailscaleServices")
	}
	for i := range services.Items {
		if s := &services.Items[i]; isLocal(s) {
			v.Local.Services = append(v.Local.Services, s)
		}
	}
	return nil
}

// isLocal reports whether a selector may select an object: no TailscaleGateway composed it, and
// it is not being deleted.
func isLocal(o client.Object) bool {
	_, composed := o.GetLabels()[meta.LabelGateway]
	return !composed && o.GetDeletionTimestamp() == nil
}

// readNeighborhood reads the objects of other TailscaleGateways that may lead back to the
// Gateway, if a discovered endpoint leads to a Gateway.
func (rd *reader) readNeighborhood(ctx context.Context, v *view) error {
	if !rd.has(routes.KindServices) || !rd.has(kindEndpoints) {
		return nil
	}
	around := routes.Neighborhood{Services: rd.gatewayServices(ctx)}
	found := map[string]bool{}
	for _, e := range v.Endpoints {
		for _, d := range e.Status.DiscoveredEndpoints {
			found[routes.DNSName(d.TailscaleFQDN)] = true
		}
	}
	overlaps := slices.ContainsFunc(around.Services, func(s *gatewayv1alpha1.TailscaleServices) bool {
		return s.Status.VIPServiceStatus != nil && found[routes.DNSName(s.Status.VIPServiceStatus.DNSName)]
	})
	if !overlaps {
		return nil
	}
	gateways, endpoints := &gatewayv1alpha1.TailscaleGatewayList{}, &gatewayv1alpha1.TailscaleEndpointsList{}
	if err := rd.list(ctx, gateways); err != nil {
		return errors.Wrap(err, "cannot list TailscaleGateways")
	}
	for i := range gateways.Items {
		around.Gateways = append(around.Gateways, &gateways.Items[i])
	}
	if err := rd.list(ctx, endpoints, client.HasLabels{meta.LabelGateway}); err != nil {
		return errors.Wrap(err, "cannot list TailscaleEndpoints")
	}
	for i := range endpoints.Items {
		around.Endpoints = append(around.Endpoints, &endpoints.Items[i])
	}
	v.Neighborhood = around
	return nil
}

// readGrants reads the ReferenceGrants, which permit namespaces to share the Gateway, and
// policies to protect routes of other namespaces.
func (rd *reader) readGrants(ctx context.Context, v *view) error {
	if !rd.has(kindReferenceGrant) {
		return nil
	}
	l := &gwapiv1beta1.ReferenceGrantList{}
	if err := rd.list(ctx, l); err != nil {
		return errors.Wrap(err, "cannot list ReferenceGrants")
	}
	v.Grants = refgrant.Grants{}
	for i := range l.Items {
		v.Grants[client.ObjectKeyFromObject(&l.Items[i])] = &l.Items[i].Spec
	}
	return nil
}

// readGateway reads the Gateway, its ListenerSets, its TailscaleGateways and its routes.
func (rd *reader) readGateway(ctx context.Context, v *view) error {
	if !rd.has(routes.KindGateway) {
		return nil
	}
	if v.Object.GatewayName().Name == "" {
		return nil
	}
	g := &gwapiv1.Gateway{}
	found, err := rd.get(ctx, v.Object.GatewayName(), g)
	if err != nil {
		return errors.Wrap(err, "cannot get Gateway")
	}
	if !found {
		return nil
	}
	v.Gateway = g
	if !v.Granted() {
		// The routes of the Gateway do not concern the TailscaleGateway. A namespace could have any number
		// of these TailscaleGateways read.
		return nil
	}
	peers := &gatewayv1alpha1.TailscaleGatewayList{}
	if err := rd.list(ctx, peers, client.MatchingFields{byParent: string(routes.KeyOf(routes.KindGateway, v.Object.GatewayName()))}); err != nil {
		return errors.Wrap(err, "cannot list TailscaleGateways")
	}
	for i := range peers.Items {
		v.Peers = append(v.Peers, &peers.Items[i])
	}
	at := []routes.ParentKey{routes.KeyOf(routes.KindGateway, v.Object.GatewayName())}
	if rd.has(routes.KindListenerSet) {
		sets := &gwapiv1.ListenerSetList{}
		if err := rd.list(ctx, sets, client.MatchingFields{byParent: string(at[0])}); err != nil {
			return errors.Wrap(err, "cannot list ListenerSets")
		}
		for i := range sets.Items {
			v.Sets = append(v.Sets, &sets.Items[i])
			at = append(at, routes.KeyOf(routes.KindListenerSet, client.ObjectKeyFromObject(&sets.Items[i])))
		}
	}
	for _, k := range at {
		if err := rd.readRoutes(ctx, v, k); err != nil {
			return err
		}
	}
	return nil
}

// readRoutes reads the routes that attach to a Gateway or a ListenerSet. A route that attaches
// to several is added once.
func (rd *reader) readRoutes(ctx context.Context, v *view, parent routes.ParentKey) error {
	seen := map[types.UID]bool{}
	for _, r := range v.Routes {
		seen[r.GetUID()] = true
	}
	for kind, l := range routeLists() {
		if !rd.has(kind) {
			continue
		}
		if err := rd.list(ctx, l, client.MatchingFields{byParent: string(parent)}); err != nil {
			return errors.Wrapf(err, "cannot list %ss", kind)
		}
		err := kmeta.EachListItem(l, func(o runtime.Object) error {
			if r, ok := o.(client.Object); ok && !seen[r.GetUID()] {
				v.Routes = append(v.Routes, r)
			}
			return nil
		})
		if err != nil {
			return errors.Wrapf(err, "cannot go through %ss", kind)
		}
	}
	return nil
}

func routeLists() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"HTTPRoute": &gwapiv1.HTTPRouteList{}, "GRPCRoute": &gwapiv1.GRPCRouteList{}, "TCPRoute": &gwapiv1.TCPRouteList{},
		"TLSRoute": &gwapiv1.TLSRouteList{}, "UDPRoute": &gwapiv1.UDPRouteList{},
	}
}
