// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A Desired is a route to generate, or the reason why it is not generated.
type Desired struct {
	// The fields in the report. Name is set even if no route is generated.
	tailnetv1alpha1.ReportedGeneratedRoute

	// target describes the backend in messages.
	target string

	// protocol is the protocol of the listeners. listeners are those for the route's host.
	protocol  gwapiv1.ProtocolType
	listeners []Listener

	// Backend is a Service, or a TailscaleServices if services is set. Its name is empty while
	// it does not exist.
	Backend  tailnetv1alpha1.ReportedBackend
	services bool

	// endpoint is the name of a discovered endpoint in its TailscaleEndpoints. device reports
	// whether the endpoint is a device.
	endpoint string
	device   bool

	// alias is the name that the target would have if it were discovered. Empty if unknown.
	alias string

	// fqdn is the host name of requests to the backend. TLS reports whether the backend uses
	// TLS.
	fqdn string
	TLS  bool

	// Generate reports whether the route is to exist.
	Generate bool

	// Retained reports that the existing route stays as it is, because it is unknown whether
	// its target still exists, or at which Service and port.
	Retained bool
}

// Key returns the name of the route.
func (w *Desired) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
}

// ID returns the kind and name of the route.
func (w *Desired) ID() ID { return ID{Kind: w.Kind, NamespacedName: w.Key()} }

// An ID is the kind and name of a route.
type ID struct {
	Kind string
	types.NamespacedName
}

// IDOf returns the kind and name of a generated route.
func IDOf(o client.Object) ID {
	kind, _ := StatusOf(o)
	return ID{Kind: kind, NamespacedName: client.ObjectKeyFromObject(o)}
}

// hosts returns the hosts of the route. None means any host.
func (w *Desired) hosts() []string {
	if w.Hostname == anyHost {
		return nil
	}
	return []string{w.Hostname}
}

// fail records why no route is generated. Only the first reason counts.
func (w *Desired) fail(s tailnetv1alpha1.GeneratedRouteState, format string, args ...any) {
	if w.State == "" {
		w.State, w.Message = s, fmt.Sprintf(format, args...)
	}
}

// place expands the patterns to the host and path prefix of the route.
func (w *Desired) place(v variables, host gatewayv1alpha1.HostPattern, prefix gatewayv1alpha1.PathPattern) {
	var err error
	if w.Hostname, err = v.host(string(host)); err != nil {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", err)
	}
	if w.PathPrefix, err = v.path(string(prefix)); err != nil {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", err)
	}
}

// setBackend sets the backend to a Service, NAME:PORT. It returns false if the argument is not
// a Service.
func (w *Desired) setBackend(namespace, service string) bool {
	name, p, ok := strings.Cut(service, ":")
	port, err := strconv.ParseUint(p, 10, 16)
	if !ok || err != nil {
		return false
	}
	w.Backend = tailnetv1alpha1.ReportedBackend{Namespace: namespace, Name: name, Port: int32(port)}
	return true
}

// retain keeps an existing route unchanged.
func (w *Desired) retain(r *gwapiv1.HTTPRoute) {
	w.Retained = true
	w.placeAs(r)
}

// placeAs sets the host and path prefix of an existing route, even if the patterns have
// changed.
func (w *Desired) placeAs(r *gwapiv1.HTTPRoute) {
	if len(r.Spec.Rules) == 0 || len(r.Spec.Rules[0].Matches) == 0 {
		return
	}
	if p := r.Spec.Rules[0].Matches[0].Path; p != nil && p.Value != nil {
		w.Hostname, w.PathPrefix = anyHost, trimPath(*p.Value)
		if len(r.Spec.Hostnames) > 0 {
			w.Hostname = string(r.Spec.Hostnames[0])
		}
		w.State, w.Message = "", ""
	}
}
