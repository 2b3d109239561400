// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// Namespace of all objects.
	Namespace   = "default"
	gatewayName = "gw"
	// listenerName is the name of the Gateway's one listener.
	listenerName = "http"
	// Listener is the port on which Envoy takes requests.
	Listener = 8888

	// BackendPort is the port of all endpoints, Services and TailscaleServices.
	BackendPort = 8000
	// firstBackend always answers.
	firstBackend = "192.0.2.10"

	// redirect is a route without a backend. A change of it makes Envoy Gateway translate, and
	// causes no other work.
	redirect = "redirect"
)

// Options of an environment.
type Options struct {
	// Routes is the number of HTTPRoutes, each with a different host.
	Routes int
	// Targets is the number of targets, which routes have in turn. Zero is one target for all.
	Targets int
	// Plain makes routes refer to Services. Otherwise they refer to TailscaleServices, each over
	// such a Service.
	Plain bool
	// Echo translates plain routes with an extension that does nothing. Otherwise they are
	// translated without an extension.
	Echo bool
	// Found uses generated routes for discovered services of a tailnet: from the extension, or
	// written by hand if Plain is set.
	Found bool
}

// extended reports whether Envoy Gateway has an extension.
func (o Options) extended() bool { return !o.Plain || o.Echo }

// host returns the host of a route.
func host(i int) string { return fmt.Sprintf("r-%d.example.com", i) }

// target returns the target of a route: the name of a Service, and of a TailscaleServices.
func (o Options) target(route int) string {
	return "app-" + strconv.Itoa(route%max(o.Targets, 1))
}

// objects returns the objects of an environment, except for its Gateway.
func (o Options) objects() []client.Object {
	out := []client.Object{redirectRoute(0)}
	for i := range max(o.Targets, 1) {
		name := o.target(i)
		out = append(out, Service(name), Slice(name, firstBackend))
		if !o.Plain && !o.Found {
			out = append(out, Services(name))
		}
	}
	if o.Found && !o.Plain {
		return out
	}
	for i := range o.Routes {
		out = append(out, o.route(i))
	}
	return out
}

// Meta returns the metadata of an object with that name.
func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Namespace, Name: name}
}

// Gateway returns a Gateway with one listener, for HTTP.
func Gateway() client.Object {
	return &gwapiv1.Gateway{
		ObjectMeta: Meta(gatewayName),
		Spec: gwapiv1.GatewaySpec{
			GatewayClassName: standalone.Class,
			Listeners:        []gwapiv1.Listener{{Name: listenerName, Port: Listener, Protocol: gwapiv1.HTTPProtocolType}},
		},
	}
}

// Parents returns the parents of a route to that Gateway.
func Parents() gwapiv1.CommonRouteSpec {
	return gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Name: gatewayName}}}
}

func (o Options) route(i int) client.Object {
	if o.Found {
		return o.foundRoute(i)
	}
	ref := gwapiv1.BackendObjectReference{Name: gwapiv1.ObjectName(o.target(i)), Port: ptr.To[gwapiv1.PortNumber](BackendPort)}
	if !o.Plain {
		ref.Group, ref.Kind = ptr.To[gwapiv1.Group](gatewayv1alpha1.Group), ptr.To[gwapiv1.Kind]("TailscaleServices")
	}
	return &gwapiv1.HTTPRoute{
		ObjectMeta: Meta("r-" + strconv.Itoa(i)),
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: Parents(),
			Hostnames:       []gwapiv1.Hostname{gwapiv1.Hostname(host(i))},
			Rules:           []gwapiv1.HTTPRouteRule{{BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: gwapiv1.BackendRef{BackendObjectReference: ref}}}}},
		},
	}
}

// redirectRoute returns the redirect route, which differs by i.
func redirectRoute(i int) *gwapiv1.HTTPRoute {
	return &gwapiv1.HTTPRoute{
		ObjectMeta: Meta(redirect),
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: Parents(),
			Hostnames:       []gwapiv1.Hostname{redirect + ".example.com"},
			Rules: []gwapiv1.HTTPRouteRule{{
				Matches: []gwapiv1.HTTPRouteMatch{{Path: &gwapiv1.HTTPPathMatch{
					Type: ptr.To(gwapiv1.PathMatchPathPrefix), Value: ptr.To("/" + strconv.Itoa(i)),
				}}},
				Filters: []gwapiv1.HTTPRouteFilter{{
					Type:            gwapiv1.HTTPRouteFilterRequestRedirect,
					RequestRedirect: &gwapiv1.HTTPRequestRedirectFilter{Hostname: ptr.To[gwapiv1.PreciseHostname]("elsewhere.example.com")},
				}},
			}},
		},
	}
}

// Service returns a Service of that name with one port.
func Service(name string) client.Object {
	return &corev1.Service{
		ObjectMeta: Meta(name),
		// Headless: the range of cluster addresses is smaller than the number of Services.
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: BackendPort, TargetPort: intstr.FromInt32(BackendPort)}}},
	}
}

// Slice returns a slice of a Service's endpoints.
func Slice(name string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  Meta(name),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](BackendPort), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
	}
	return s
}

// Services returns a TailscaleServices over the Service of the same name.
func Services(name string) *gatewayv1alpha1.TailscaleServices {
	return &gatewayv1alpha1.TailscaleServices{
		ObjectMeta: Meta(name),
		Spec: gatewayv1alpha1.TailscaleServicesSpec{
			Selector:   metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			VIPService: gatewayv1alpha1.VIPServiceTemplate{Ports: []gatewayv1alpha1.ServicePort{gatewayv1alpha1.ServicePort("tcp:" + strconv.Itoa(BackendPort))}},
			Backends:   []gatewayv1alpha1.Backend{{Name: name, Port: BackendPort}},
		},
	}
}
