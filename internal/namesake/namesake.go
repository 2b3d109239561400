// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package namesake sets the defaults of a TailscaleServices' spec: the backends, which are the
// Service with the object's name in its namespace, and the ports of the Tailscale Service.
// Functions and the extension share the rules. The package is pure.
package namesake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// A Service is the core Service with an object's name.
type Service struct {
	Namespace, Name string

	// Exists reports whether the Service exists.
	Exists bool

	// Ports are its TCP ports.
	Ports []int32
}

// A Problem is a message for the user that describes why defaults cannot be set.
type Problem struct {
	// Missing reports whether the Service does not exist yet.
	Missing bool

	Message string
}

// Answers reports whether the Service with the object's name is the backend, because the spec
// has none.
func Answers(spec gatewayv1alpha1.TailscaleServicesSpec) bool { return len(spec.Backends) == 0 }

// Fill returns the spec with default backends and ports. The Service matters only if the spec
// has no backends.
//
// A port of the Tailscale Service goes to the Service's port of the same number, or to its only
// port. The default ports are those of the Service, or those of the backends if the spec has
// any.
func Fill(spec gatewayv1alpha1.TailscaleServicesSpec, s Service) (gatewayv1alpha1.TailscaleServicesSpec, *Problem) {
	if !Answers(spec) {
		return fillPorts(spec)
	}
	s.Ports = slices.Compact(slices.Sorted(slices.Values(s.Ports)))
	switch {
	case !s.Exists:
		return spec, &Problem{Missing: true, Message: fmt.Sprintf("there is no Service %q in namespace %q; create it, or set spec.backends", s.Name, s.Namespace)}
	case len(s.Ports) == 0:
		return spec, &Problem{Message: fmt.Sprintf("Service %q has no port of TCP; add one, or set spec.backends", s.Name)}
	}
	if len(spec.VIPService.Ports) == 0 {
		for _, p := range s.Ports {
			spec.VIPService.Ports = append(spec.VIPService.Ports, servicePort(p))
		}
	}
	for _, port := range spec.VIPService.Ports {
		p, ok := portOf(port)
		if !ok {
			return spec, &Problem{Message: fmt.Sprintf("spec.vipService.ports %s needs spec.backends, which say what answers", port)}
		}
		backendPort := p
		if !slices.Contains(s.Ports, p) {
			if len(s.Ports) > 1 {
				return spec, &Problem{Message: fmt.Sprintf("Service %q has no port %d, only %s; add it there, or say in spec.backends which port answers", s.Name, p, list(s.Ports))}
			}
			backendPort = s.Ports[0]
		}
		spec.Backends = append(spec.Backends, gatewayv1alpha1.Backend{
			Kind: gatewayv1alpha1.BackendKindService, Name: s.Name, Port: backendPort, VIPPort: ptr.To(p), Protocol: gatewayv1alpha1.BackendProtocolTCP,
		})
	}
	return spec, nil
}

// fillPorts sets the ports of the backends: the vipPort of each, or its port.
func fillPorts(spec gatewayv1alpha1.TailscaleServicesSpec) (gatewayv1alpha1.TailscaleServicesSpec, *Problem) {
	if len(spec.VIPService.Ports) > 0 {
		return spec, nil
	}
	spec.Backends = slices.Clone(spec.Backends)
	var ports []int32
	for i := range spec.Backends {
		b := &spec.Backends[i]
		if b.VIPPort == nil && b.Port == 0 {
			return spec, &Problem{Message: fmt.Sprintf("spec.backends[%d] says no port; set its port or vipPort, or spec.vipService.ports", i)}
		}
		if b.VIPPort == nil {
			b.VIPPort = ptr.To(b.Port)
		}
		ports = append(ports, *b.VIPPort)
	}
	slices.Sort(ports)
	for _, p := range slices.Compact(ports) {
		spec.VIPService.Ports = append(spec.VIPService.Ports, servicePort(p))
	}
	return spec, nil
}

func servicePort(p int32) gatewayv1alpha1.ServicePort {
	return gatewayv1alpha1.ServicePort("tcp:" + strconv.Itoa(int(p)))
}

// portOf returns the number of an entry of a service's ports, and false if it has none.
func portOf(p gatewayv1alpha1.ServicePort) (int32, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(p), "tcp:"), 10, 16)
	return int32(n), err == nil && n > 0
}

func list(ports []int32) string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = strconv.Itoa(int(p))
	}
	return strings.Join(out, ", ")
}
