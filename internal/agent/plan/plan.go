// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a proxy pod serves: from ServiceAttachments and the
// health of their backends it computes tailscaled's config, containerboot's
// serve config and the status to report. It is pure: no clock, no I/O, and the
// same input gives the same bytes. Probing, writing and reporting live beside it.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// Messages of a hosted service. They say why it carries no traffic here.
const (
	messageStopping     = "The pod is being stopped"
	messageProbing      = "Waiting for the first probes of the backends"
	messageNoAddress    = "Waiting for the service to be made in the tailnet"
	messageNotInTailnet = "Waiting for tailscaled to join the tailnet"
	messageNotAccepted  = "Waiting for the tailnet to accept this machine as a host of the service; it may have to be approved"
)

// maxListed is how many backends a message names.
const maxListed = 3

// A Service is what the pod does for one Tailscale Service.
type Service struct {
	// Name in the tailnet, such as svc:web.
	Name string

	// Handlers of its ports. Nil while the service is not to be served.
	Handlers Handlers

	// Terminations are what the agent does behind the handlers, by address.
	Terminations []Termination

	// Targets are the distinct backends, by address.
	Targets []probe.Target

	// Advertise reports whether to offer the service to control.
	Advertise bool

	// Healthy is how many targets are healthy.
	Healthy int

	// Reason is one word for why the service is not advertised, if its certificate
	// is why.
	Reason xpv2.ConditionReason

	// Message says why the service is not advertised. When it is, it says what
	// is to be fixed nevertheless, and is empty if nothing is.
	Message string
}

// An Input is what there is to plan with.
type Input struct {
	// Attachments of the pod's endpoints, in any order.
	Attachments []v1alpha1.ServiceAttachment

	// Health of backends. A target that is not in it has unknown health.
	Health map[probe.Target]probe.Status

	// Advertised are the services that the pod advertises so far. It matters
	// while a service's backends are neither known to be healthy nor unhealthy:
	// such a service stays as it is.
	Advertised []string

	// Certificates of Secrets. One that is not in it is not known yet.
	Certificates map[CertificateRef]Certificate

	// Issuer is the machine, and its state Secret, that gets the certificates that
	// Tailscale provides for all machines of the group.
	Issuer string

	// Issuing holds, by DNS name, why the last attempt to get or renew a
	// certificate has failed. Only the issuer knows.
	Issuing map[string]string

	// Offered are the DNS names of services to advertise without the certificate that
	// Tailscale provides: control grants the name only to a host that advertises.
	Offered map[string]bool

	// HTTPS reports whether the tailnet provides certificates.
	HTTPS HTTPS

	// Stopping withdraws everything.
	Stopping bool
}

// Services returns what to do for each service, by name.
func Services(in Input) []Service {
	attachments := hosted(in.Attachments)
	out := make([]Service, 0, len(attachments))
	for _, a := range attachments {
		out = append(out, service(a.Spec, in))
	}
	slices.SortFunc(out, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// hosted are the attachments to act on, one for each service. Those of other
// directions than ingress, and those under deletion, ask for nothing. When several
// claim one service the first by name has it, of those that have its addresses: who
// has none may never own the service.
func hosted(attachments []v1alpha1.ServiceAttachment) []v1alpha1.ServiceAttachment {
	sorted := slices.SortedFunc(slices.Values(attachments), func(a, b v1alpha1.ServiceAttachment) int {
		return cmp.Or(cmp.Compare(min(len(b.Spec.Addresses), 1), min(len(a.Spec.Addresses), 1)), cmp.Compare(a.Name, b.Name))
	})
	seen := make(map[v1alpha1.ServiceName]bool, len(sorted))
	return slices.DeleteFunc(sorted, func(a v1alpha1.ServiceAttachment) bool {
		if a.Spec.Direction != v1alpha1.DirectionIngress || a.DeletionTimestamp != nil || seen[a.Spec.ServiceName] {
			return true
		}
		seen[a.Spec.ServiceName] = true
		return false
	})
}

func service(spec v1alpha1.ServiceAttachmentSpec, in Input) Service {
	s := Service{
		Name:    string(spec.ServiceName),
		Targets: make([]probe.Target, 0, len(spec.Ports)),
	}
	if len(spec.Addresses) > 0 {
		s.Handlers = make(Handlers, len(spec.Ports))
	}
	for _, p := range spec.Ports {
		if p.Backend == nil {
			continue
		}
		t := target(*p.Backend, spec.HealthCheck)
		s.Targets = append(s.Targets, t)
		// All ports: packets, of which a serve config knows nothing.
		if p.Port == 0 || s.Handlers == nil {
			continue
		}
		// Tailscaled dials this address alone, even while other backends are healthy.
		if address.RefusedHost(t.Host) != "" || in.Health[t].Refused() {
			continue
		}
		h, end := handler(spec, p, t.Address(), in.Issuer)
		if h != nil {
			s.Handlers[uint16(p.Port)] = *h
		}
		if end != nil {
			s.Terminations = append(s.Terminations, *end)
		}
	}
	sortTerminations(s.Terminations)
	slices.SortFunc(s.Targets, func(a, b probe.Target) int { return cmp.Compare(a.Address(), b.Address()) })
	s.Targets = slices.Compact(s.Targets)

	unknown := 0
	sick := make([]string, 0, len(s.Targets))
	for _, t := range s.Targets {
		switch st := in.Health[t]; st.Health {
		case probe.Healthy:
			s.Healthy++
		case probe.Unhealthy:
			sick = append(sick, fmt.Sprintf("%s (%s)", t.Address(), reason(t, st.Reason)))
		case probe.Unknown:
			unknown++
		}
	}

	tls := validateTLS(spec, in)
	was := slices.Contains(in.Advertised, s.Name)
	switch {
	case in.Stopping:
		s.Message = messageStopping
	case len(spec.Addresses) == 0:
		// The name may be somebody else's in the tailnet: who makes the service
		// finds out.
		s.Message = messageNoAddress
	case tls.refused != "":
		s.Reason, s.Message = tls.reason, tls.refused
	case tls.unknown != "" && !was:
		s.Message = tls.unknown
	case s.Healthy > 0, unknown > 0 && was:
		s.Advertise, s.Message = true, tls.warning
	case unknown > 0:
		s.Message = messageProbing
	default:
		s.Message = "No backend answers: " + list(sick)
	}
	return s
}

func target(b v1alpha1.AttachmentBackend, hc v1alpha1.AttachmentHealthCheck) probe.Target {
	return probe.Target{
		Host:               b.Host,
		Port:               uint16(b.Port),
		Path:               hc.Path,
		ResolveOnly:        hc.ResolveOnly,
		Interval:           hc.Interval.Duration,
		Timeout:            hc.Timeout.Duration,
		HealthyThreshold:   int(hc.HealthyThreshold),
		UnhealthyThreshold: int(hc.UnhealthyThreshold),
	}
}

// suffixService ends the names of Services in the cluster.
const suffixService = ".svc"

// reason returns why a target is unhealthy, in terms of Kubernetes where DNS has its own.
func reason(t probe.Target, why string) string {
	name, ok := strings.CutSuffix(t.Host, suffixService)
	if !ok || why != probe.ReasonNoSuchHost {
		return why
	}
	name, namespace, _ := strings.Cut(name, ".")
	return fmt.Sprintf("there is no Service %s/%s, or it is headless and has no ready pod", namespace, name)
}

// list joins sorted items, and says how many it left out.
func list(items []string) string {
	if len(items) <= maxListed {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:maxListed], ", "), len(items)-maxListed)
}

// Targets returns the backends of all services.
func Targets(services []Service) []probe.Target {
	var out []probe.Target
	for _, s := range services {
		out = append(out, s.Targets...)
	}
	return out
}

// Advertised returns the names of the services to advertise, sorted.
func Advertised(services []Service) []string {
	out := make([]string, 0, len(services))
	for _, s := range services {
		if s.Advertise {
			out = append(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}
