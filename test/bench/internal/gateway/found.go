// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const (
	// tailnet is the tailnet of the discovered services, which a TailscaleGateway with the
	// Gateway's name selects.
	tailnet = "found"

	// prefixPattern is the path pattern of routes to discovered services.
	prefixPattern = "/tailscale/{service}/"
)

// service returns the name of a discovered service, without svc:. The host of its route is that of
// host.
func service(i int) string { return "r-" + strconv.Itoa(i) }

func fqdn(i int) string { return service(i) + ".tail1234.ts.net" }

// path returns the path of a route.
func (o Options) path(i int) string {
	if !o.Found {
		return "/"
	}
	return "/tailscale/" + service(i) + "/"
}

// foundRoute returns the route that is generated for a discovered service, with all defaults.
func (o Options) foundRoute(i int) *gwapiv1.HTTPRoute {
	return &gwapiv1.HTTPRoute{
		ObjectMeta: Meta(service(i)),
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{
				Group: ptr.To[gwapiv1.Group](gwapiv1.GroupName), Kind: ptr.To[gwapiv1.Kind]("Gateway"),
				Namespace: ptr.To[gwapiv1.Namespace](Namespace), Name: gatewayName, SectionName: ptr.To[gwapiv1.SectionName](listenerName),
			}}},
			Hostnames: []gwapiv1.Hostname{gwapiv1.Hostname(host(i))},
			Rules: []gwapiv1.HTTPRouteRule{{
				Matches: []gwapiv1.HTTPRouteMatch{{Path: &gwapiv1.HTTPPathMatch{
					Type: ptr.To(gwapiv1.PathMatchPathPrefix), Value: ptr.To("/tailscale/" + service(i)),
				}}},
				Filters: []gwapiv1.HTTPRouteFilter{{Type: gwapiv1.HTTPRouteFilterURLRewrite, URLRewrite: &gwapiv1.HTTPURLRewriteFilter{
					Hostname: ptr.To(gwapiv1.PreciseHostname(fqdn(i))),
					Path:     &gwapiv1.HTTPPathModifier{Type: gwapiv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: ptr.To("/")},
				}}},
				BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: gwapiv1.BackendRef{
					BackendObjectReference: gwapiv1.BackendObjectReference{
						Group: ptr.To[gwapiv1.Group](""), Kind: ptr.To[gwapiv1.Kind]("Service"), Namespace: ptr.To[gwapiv1.Namespace](Namespace),
						Name: gwapiv1.ObjectName(o.target(i)), Port: ptr.To[gwapiv1.PortNumber](BackendPort),
					},
					Weight: ptr.To[int32](1),
				}}},
			}},
		},
	}
}

// find creates a TailscaleEndpoints whose status lists the discovered services, and a
// TailscaleGateway that generates routes to them.
func (w *Environment) find(ctx context.Context) error {
	labels := map[string]string{meta.LabelGateway: gatewayName, meta.LabelGatewayTailnet: tailnet, meta.LabelTailnet: tailnet}
	e := &gatewayv1alpha1.TailscaleEndpoints{ObjectMeta: Meta(gatewayName + "-" + tailnet), Spec: gatewayv1alpha1.TailscaleEndpointsSpec{Tailnet: tailnet}}
	e.Labels = labels
	if err := w.kube.Create(ctx, e); err != nil {
		return errors.Wrap(err, "cannot create TailscaleEndpoints")
	}
	for i := range w.options.Routes {
		name := "svc-" + service(i)
		e.Status.DiscoveredEndpoints = append(e.Status.DiscoveredEndpoints, gatewayv1alpha1.DiscoveredEndpoint{
			Name: name, Source: string(tailnetv1alpha1.DiscoverServices), TailscaleFQDN: fqdn(i),
		})
		e.Status.EgressTargets = append(e.Status.EgressTargets, gatewayv1alpha1.EgressTargetStatus{
			Name: fmt.Sprintf("%s/%d", name, BackendPort), Address: fmt.Sprintf("100.64.0.1:%d", BackendPort), Protocol: gatewayv1alpha1.EndpointProtocolHTTP,
			Service: fmt.Sprintf("%s:%d", w.options.target(i), BackendPort), ReadyProxies: 1,
		})
	}
	if err := w.kube.Status().Update(ctx, e); err != nil {
		return errors.Wrap(err, "cannot write the discovered services")
	}
	g := &gatewayv1alpha1.TailscaleGateway{
		ObjectMeta: Meta(gatewayName),
		Spec: gatewayv1alpha1.TailscaleGatewaySpec{
			GatewayRef: &gatewayv1alpha1.GatewayRef{Name: gatewayName},
			Tailnets: []gatewayv1alpha1.GatewayTailnet{{
				Name:             tailnet,
				ServiceDiscovery: &gatewayv1alpha1.GatewayDiscovery{Port: BackendPort, Patterns: []string{"*"}},
				RouteGeneration:  gatewayv1alpha1.RouteGeneration{Egress: &gatewayv1alpha1.EgressRoutes{HostPattern: "{service}.example.com", PathPrefix: prefixPattern}},
			}},
		},
	}
	return errors.Wrap(w.kube.Create(ctx, g), "cannot create TailscaleGateway")
}

// generated waits until all routes exist and equal the routes written by hand.
func (w *Environment) generated(ctx context.Context) error {
	want := map[gwapiv1.Hostname]*gwapiv1.HTTPRoute{}
	for i := range w.options.Routes {
		want[gwapiv1.Hostname(host(i))] = w.options.foundRoute(i)
	}
	return w.gateway.Until(ctx, func(ctx context.Context) error {
		l := &gwapiv1.HTTPRouteList{}
		if err := w.kube.List(ctx, l, client.HasLabels{meta.LabelGenerated}); err != nil {
			return errors.Wrap(err, "cannot list generated routes")
		}
		if len(l.Items) != len(want) {
			return errors.Errorf("%d of %d routes are generated", len(l.Items), len(want))
		}
		for _, r := range l.Items {
			expected := want[r.Spec.Hostnames[0]]
			if expected == nil || !equality.Semantic.DeepEqual(expected.Spec, r.Spec) {
				return errors.Errorf("generated route %s differs from the route written by hand", r.Name)
			}
			if len(r.Status.Parents) == 0 {
				return errors.Errorf("Envoy Gateway has not processed generated route %s", r.Name)
			}
		}
		return nil
	})
}
