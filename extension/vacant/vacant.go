// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package vacant maintains EndpointSlices of Services that fail over to other clusters and have no ready
// endpoint in this one. Envoy Gateway answers a route whose Services have no endpoint at all by a 503 of
// its own, without a cluster and without the route's policies, so that nothing could fail over
// (failedNoReadyEndpoints in envoyproxy/gateway internal/gatewayapi/route.go). Endpoints that are not ready
// stay in its cluster, as draining (getIREndpointsFromEndpointSlice there).
//
// Therefore such a Service has an EndpointSlice with one endpoint that is neither ready nor serving. Its
// address is one for documentation, which nobody has. kube-proxy and DNS ignore such endpoints. The
// EndpointSlice exists only while no other endpoint is ready: it would count as an unhealthy one, and
// Envoy would send a part of the requests to other clusters.
package vacant

import (
	"context"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// writerLabel is on the EndpointSlices, and its value the extension that writes them: installed, or
	// the Gateway that has a dedicated one. Each leaves those of the other alone.
	writerLabel = "gateway.tailscale.com/vacant"
	installed   = "installed"

	// Addresses for documentation (RFC 5737 and RFC 3849).
	address4 = "192.0.2.1"
	address6 = "2001:db8::1"

	// altered is the state of an EndpointSlice that another client has changed.
	altered = "altered"

	// description is the description annotation of an EndpointSlice.
	description = "No endpoint of this Service is ready in this cluster, and its routes fail over to others. This endpoint, which is never ready, makes Envoy Gateway keep the routes meanwhile. The extension of tailscale-gateway manages it."
)

// A Controller reconciles the EndpointSlices.
type Controller struct {
	reconciler *reconcile.Reconciler
	store      *index.Store
	writer     *writer
}

// New returns a Controller that writes with the client. Start it with Run. The gateway is the one that
// the extension is dedicated to, or nil.
func New(c client.Client, s *index.Store, gateway *types.NamespacedName, log logging.Logger) *Controller {
	w := &writer{client: c, label: installed}
	if gateway != nil {
		w.label = names.Child("gateway", gateway.Name)
	}
	return &Controller{reconciler: reconcile.NewReconciler("EndpointSlice", w, log), store: s, writer: w}
}

// Run reconciles the EndpointSlices until ctx ends. The store must be complete.
func (c *Controller) Run(ctx context.Context, informers watch.Informers) error {
	if err := c.reconciler.Watch(ctx, informers, &discoveryv1.EndpointSlice{}, c.writer.state); err != nil || ctx.Err() != nil {
		return err
	}
	changed, end := c.store.Revised()
	defer end()
	update := func() { c.reconciler.SetDesired(c.writer.desired(c.store.Snapshot())) }
	update()
	return c.reconciler.Follow(ctx, changed, update)
}

// A vacancy is a Service without ready endpoints, with its ports that fail over. Its text is the state of
// an EndpointSlice: SERVICE FAMILY, then NAME:PORT of each port, separated by spaces.
type vacancy struct {
	service string
	family  discoveryv1.AddressType
	ports   []string
}

func (v vacancy) String() string {
	return strings.Join(append([]string{v.service, string(v.family)}, v.ports...), " ")
}

// parse parses the text of a vacancy.
func parse(state string) (vacancy, error) {
	fields := strings.Fields(state)
	if len(fields) < 3 {
		return vacancy{}, errors.Errorf("%q is not a Service with a family and ports", state)
	}
	return vacancy{service: fields[0], family: discoveryv1.AddressType(fields[1]), ports: fields[2:]}, nil
}

// desired returns the states of the EndpointSlices that a snapshot requires, by name.
func (w *writer) desired(s *ir.Snapshot) map[types.NamespacedName]string {
	vacancies := map[types.NamespacedName]vacancy{}
	for t := range vacantTargets(s) {
		n := types.NamespacedName{Namespace: t.Key.Namespace, Name: t.Key.Name}
		v := vacancies[n]
		v.service, v.family = t.Key.Name, discoveryv1.AddressTypeIPv4
		if t.Vacant.IPv6 {
			v.family = discoveryv1.AddressTypeIPv6
		}
		v.ports = append(v.ports, t.Vacant.Name+":"+strconv.Itoa(int(t.Key.Port)))
		vacancies[n] = v
	}
	out := make(map[types.NamespacedName]string, len(vacancies))
	for n, v := range vacancies {
		slices.Sort(v.ports)
		// Routes of several kinds may name one port.
		v.ports = slices.Compact(v.ports)
		out[types.NamespacedName{Namespace: n.Namespace, Name: w.name(v)}] = v.String()
	}
	return out
}

// vacantTargets returns the targets without ready endpoints in this cluster that routes with failover may
// refer to: a route without permission changes nothing in the namespace of the Service.
func vacantTargets(s *ir.Snapshot) map[*ir.Target]struct{} {
	out := map[*ir.Target]struct{}{}
	for r := range s.Routes() {
		if len(r.Failover) == 0 {
			continue
		}
		for _, rule := range r.Rules {
			for _, b := range rule.Backends {
				k, ok := b.Failover(r.Key.Kind)
				if !ok || !s.Permitted(r.Key, b) {
					continue
				}
				if t := s.Target(k); t != nil && t.Vacant != nil {
					out[t] = struct{}{}
				}
			}
		}
	}
	return out
}

type writer struct {
	client client.Client
	label  string
}

// name returns the name of a vacancy's EndpointSlice. Its family is part of the name, because Kubernetes
// does not let it change, and a Service may be replaced by one of the other family.
func (w *writer) name(v vacancy) string {
	parts := []string{"tailscale-vacant", w.label, v.service}
	if v.family == discoveryv1.AddressTypeIPv6 {
		parts = append(parts, "ipv6")
	}
	return names.Child(parts...)
}

// state returns the state of an EndpointSlice. It is empty if this extension does not manage it.
func (w *writer) state(o client.Object) string {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || s.Labels[writerLabel] != w.label || s.Labels[ir.ManagedByLabel] != ir.ManagedBy {
		return ""
	}
	v := vacancy{service: s.Labels[discoveryv1.LabelServiceName], family: s.AddressType}
	for _, p := range s.Ports {
		v.ports = append(v.ports, ptr.Deref(p.Name, "")+":"+strconv.Itoa(int(ptr.Deref(p.Port, 0))))
	}
	slices.Sort(v.ports)
	if v.service == "" || len(v.ports) == 0 || len(s.Endpoints) != 1 || !slices.Equal(s.Endpoints[0].Addresses, []string{v.address()}) {
		return altered
	}
	if c := s.Endpoints[0].Conditions; ptr.Deref(c.Ready, true) || ptr.Deref(c.Serving, true) {
		return altered
	}
	return v.String()
}

func (v vacancy) address() string {
	if v.family == discoveryv1.AddressTypeIPv6 {
		return address6
	}
	return address4
}

// Write implements reconcile.Writer.
func (w *writer) Write(ctx context.Context, n types.NamespacedName, state string, observed *reconcile.Observed) (*reconcile.Observed, error) {
	u, err := w.build(n, state)
	if err != nil {
		return nil, err
	}
	if err := reconcile.Apply(ctx, w.client, u, observed); err != nil {
		return nil, errors.Wrapf(err, "cannot write EndpointSlice %s", n)
	}
	return &reconcile.Observed{State: state, Object: u}, nil
}

// Delete implements reconcile.Writer.
func (w *writer) Delete(ctx context.Context, n types.NamespacedName, observed *reconcile.Observed) error {
	return errors.Wrapf(reconcile.Delete(ctx, w.client, observed), "cannot delete EndpointSlice %s", n)
}

// build returns the EndpointSlice for a state.
func (w *writer) build(n types.NamespacedName, state string) (*unstructured.Unstructured, error) {
	v, err := parse(state)
	if err != nil {
		return nil, err
	}
	ports := make([]any, 0, len(v.ports))
	for _, p := range v.ports {
		name, number, _ := strings.Cut(p, ":")
		port, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot read the port of Service %s", v.service)
		}
		ports = append(ports, map[string]any{"name": name, "port": port, "protocol": "TCP"})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"addressType": string(v.family),
		"ports":       ports,
		"endpoints": []any{map[string]any{
			"addresses":  []any{v.address()},
			"conditions": map[string]any{"ready": false, "serving": false, "terminating": false},
		}},
	}}
	u.SetAPIVersion(discoveryv1.SchemeGroupVersion.String())
	u.SetKind("EndpointSlice")
	u.SetNamespace(n.Namespace)
	u.SetName(n.Name)
	u.SetLabels(map[string]string{
		discoveryv1.LabelServiceName: v.service,
		discoveryv1.LabelManagedBy:   ir.ManagedBy,
		ir.ManagedByLabel:            ir.ManagedBy,
		writerLabel:                  w.label,
	})
	u.SetAnnotations(map[string]string{"gateway.tailscale.com/description": description})
	return u, nil
}
