// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// servicePrefix is the prefix of the names of endpoints that are services, and not devices.
const servicePrefix = "svc-"

// nameAndKind returns the name and the kind of a discovered endpoint.
func nameAndKind(d gatewayv1alpha1.DiscoveredEndpoint) (name, kind string) {
	if d.Source == string(tailnetv1alpha1.DiscoverServices) {
		return strings.TrimPrefix(d.Name, servicePrefix), "the service"
	}
	return d.Name, "the device"
}

// discoveredIn describes a discovered endpoint in messages.
func discoveredIn(d gatewayv1alpha1.DiscoveredEndpoint, tailnet string) string {
	name, kind := nameAndKind(d)
	return fmt.Sprintf("%s %s of tailnet %s", kind, name, tailnet)
}

// endpointOf returns the endpoint in the label of a generated route. Its name is empty if the
// route has no such label.
func endpointOf(r client.Object) gatewayv1alpha1.DiscoveredEndpoint {
	d := gatewayv1alpha1.DiscoveredEndpoint{Name: r.GetLabels()[meta.LabelEndpoint]}
	if strings.HasPrefix(d.Name, servicePrefix) {
		d.Source = string(tailnetv1alpha1.DiscoverServices)
	}
	return d
}
