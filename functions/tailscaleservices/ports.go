// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// errTemplateLabels is for the user.
var errTemplateLabels = errors.New("endpointTemplate.labels and selector.matchLabels do not satisfy selector.matchExpressions; add labels that do")

// A specError tells what of a spec cannot be done. It is for the user.
type specError struct {
	reason  xpv2.ConditionReason
	message string
}

// Error tells what cannot be done.
func (e *specError) Error() string { return e.message }

func invalidBackends(format string, args ...any) *specError {
	return &specError{reason: meta.ReasonInvalidBackends, message: fmt.Sprintf(format, args...)}
}

// needsGateway is what a proxy cannot do: it hands each port to one Service.
func needsGateway(format string, args ...any) *specError {
	return &specError{
		reason:  meta.ReasonUnsupported,
		message: fmt.Sprintf(format, args...) + ", or let a Gateway balance them and name its Service as the one backend",
	}
}

// An assignment gives a port of a service to a backend.
type assignment struct {
	port    int32
	backend gatewayv1alpha1.Backend
}

// assignPorts gives each port of the service to one backend, by port. What is
// wrong is told by field, for the user.
func assignPorts(spec gatewayv1alpha1.TailscaleServicesSpec) ([]assignment, *specError) {
	ports, err := servicePorts(spec.VIPService.Ports)
	if err != nil {
		return nil, err
	}
	if lb := spec.LoadBalancing; lb != nil && lb.Strategy != "" && lb.Strategy != gatewayv1alpha1.StrategyRoundRobin {
		return nil, needsGateway("proxies do not know spec.loadBalancing.strategy %s; set %s", lb.Strategy, gatewayv1alpha1.StrategyRoundRobin)
	}
	named := map[int32][]int{}
	var rest []int
	for i, b := range spec.Backends {
		if b.VIPPort == nil {
			rest = append(rest, i)
			continue
		}
		if !slices.Contains(ports, *b.VIPPort) {
			return nil, invalidBackends("spec.backends[%d].vipPort %d is not in spec.vipService.ports; add tcp:%d there", i, *b.VIPPort, *b.VIPPort)
		}
		named[*b.VIPPort] = append(named[*b.VIPPort], i)
	}

	out := make([]assignment, 0, len(ports))
	for _, p := range ports {
		takers := named[p]
		if len(takers) == 0 {
			takers = rest
		}
		switch {
		case len(takers) == 0:
			return nil, invalidBackends("no backend answers port tcp:%d; add one to spec.backends with vipPort %d", p, p)
		case len(takers) > 1:
			return nil, needsGateway("%s all answer port tcp:%d; a port takes one backend, so give each a vipPort of its own", fields(takers), p)
		}
		out = append(out, assignment{port: p, backend: spec.Backends[takers[0]]})
	}
	return out, nil
}

func servicePorts(in []gatewayv1alpha1.ServicePort) ([]int32, *specError) {
	out := make([]int32, 0, len(in))
	for i, p := range in {
		n, err := strconv.ParseUint(strings.TrimPrefix(string(p), "tcp:"), 10, 16)
		if err != nil || n == 0 {
			return nil, invalidBackends("spec.vipService.ports[%d] %q is not tcp:PORT with PORT from 1 to 65535", i, p)
		}
		out = append(out, int32(n))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func fields(backends []int) string {
	names := make([]string, len(backends))
	for i, b := range backends {
		names[i] = fmt.Sprintf("spec.backends[%d]", b)
	}
	return compose.List(names...)
}

// Probes of a service that says nothing of health: a TCP connection. A backend
// that is gone is withdrawn within two intervals and a timeout, 12 s at most.
const (
	probeInterval           = 5 * time.Second
	probeTimeout            = 2 * time.Second
	probeHealthyThreshold   = 1
	probeUnhealthyThreshold = 2
)

// Figures that a health check has when it does not say otherwise. They are the
// schema's defaults, for who calls the function without it.
const (
	checkInterval           = 10 * time.Second
	checkTimeout            = 3 * time.Second
	checkHealthyThreshold   = 2
	checkUnhealthyThreshold = 3
	checkPath               = "/health"
)

// healthCheck of the agents.
func healthCheck(lb *gatewayv1alpha1.LoadBalancing) tailnetv1alpha1.AttachmentHealthCheck {
	if lb == nil || lb.HealthCheck == nil {
		return tailnetv1alpha1.AttachmentHealthCheck{
			Interval:           metav1.Duration{Duration: probeInterval},
			Timeout:            metav1.Duration{Duration: probeTimeout},
			HealthyThreshold:   probeHealthyThreshold,
			UnhealthyThreshold: probeUnhealthyThreshold,
		}
	}
	h := lb.HealthCheck
	out := tailnetv1alpha1.AttachmentHealthCheck{
		Interval:           metav1.Duration{Duration: positive(h.Interval.Duration, checkInterval)},
		Timeout:            metav1.Duration{Duration: positive(h.Timeout.Duration, checkTimeout)},
		HealthyThreshold:   positive(h.HealthyThreshold, checkHealthyThreshold),
		UnhealthyThreshold: positive(h.UnhealthyThreshold, checkUnhealthyThreshold),
	}
	if h.Enabled == nil || !*h.Enabled {
		out.ResolveOnly = h.Enabled != nil
		return out
	}
	out.Path = h.Path
	if out.Path == "" {
		out.Path = checkPath
	}
	return out
}

func positive[T ~int32 | ~int64](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
