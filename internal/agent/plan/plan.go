// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a proxy pod serves: from ServiceAttachments and the health of their
// backends it computes tailscaled's config, containerboot's serve config and the status to
// report. It is pure: it uses no clock and no I/O, and the same input gives the same bytes.
// Other packages probe, write and report.
package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// Messages of a hosted service. They say why it carries no traffic in this pod.
const (
	messageStopping     = "The pod is being stopped"
	messageProbing      = "Waiting for the first probes of the backends"
	messageNoAddress    = "Waiting for the service to be made in the tailnet"
	messageNotInTailnet = "Waiting for tailscaled to join the tailnet"
	messageNotAccepted  = "Waiting for the tailnet to accept this machine as a host of the service; it may have to be approved"
	messageDrained      = "Withdrawn while another cluster serves: the service drains in this cluster"
	messageWithdrawn    = "Withdrawn while another host serves all ports, because a backend does not answer: %s"
	messageNotRouted    = "The tailnet has accepted this machine as a host of the service and has made no host primary, so clients have no route to it"
)

// messageAnonymous is about an advertised service that lacks a part.
const messageAnonymous = "Tailscaled is older than 1.92 and does not send the addresses of clients: requests have no identity headers, and backends get no PROXY protocol header, or one without an address; use a newer proxy image"

// messageUnknownPorts is about ports that are not served, so that nothing is sent in a way that the
// backend does not expect.
const messageUnknownPorts = "This version of the agent does not know the protocol or the TLS settings of ports %s, and does not serve them; upgrade the provider"

// messageIdle is about an advertised service some of whose backends receive nothing.
const messageIdle = "Other backends of the port receive all connections, because these do not answer: %s"

// maxListed is the number of backends that a message lists.
const maxListed = 3

// A Service is the pod's plan for one Tailscale Service.
type Service struct {
	// Name is the name in the tailnet, such as svc:web.
	Name string

	// Handlers are the handlers of the service's ports. Nil if the service must not be served.
	Handlers Handlers

	// Terminations are the connections that the agent terminates behind the handlers, sorted by
	// address.
	Terminations []Termination

	// Targets are the distinct backends, sorted by address.
	Targets []probe.Target

	// Advertise reports whether the pod advertises the service to control.
	Advertise bool

	// Undecided reports that the service may be advertised once a probe or a certificate is known.
	Undecided bool

	// Healthy is the number of healthy targets.
	Healthy int

	// Unhealthy are the ports whose targets are all known not to answer, sorted. 0 stands for all ports.
	Unhealthy []int32

	// Reason is the reason why the service is not advertised, if its certificate is the cause.
	Reason xpv2.ConditionReason

	// Message says why the service is not advertised. For an advertised service it says what to fix
	// nevertheless, and is empty if there is nothing to fix.
	Message string
}

// An Input is the input for planning services.
type Input struct {
	// Attachments are those of the pod's endpoints, in any order.
	Attachments []v1alpha1.ServiceAttachment

	// Health is the health of backends. A target without an entry has unknown health.
	Health map[probe.Target]probe.Status

	// Advertised are the services that the pod currently advertises. A service whose backends are
	// neither known to be healthy nor unhealthy stays advertised or not advertised.
	Advertised []string

	// Serving are the handlers in tailscaled's serve config, by service. A backend that is not probed
	// yet keeps its address in it.
	Serving map[string]Handlers

	// Certificates are the certificates of Secrets. A certificate without an entry is not known
	// yet.
	Certificates map[CertificateRef]Certificate

	// Issuer is the name of the machine that gets the certificates that Tailscale provides, for all
	// machines of the group. Its state Secret has the same name.
	Issuer string

	// Issuing holds, by DNS name, why a certificate cannot be had or renewed. Only the issuer has
	// this information.
	Issuing map[string]IssueProblem

	// Offered are the DNS names of services to advertise before Tailscale has provided their
	// certificate: control grants the name only to a host that advertises the service.
	Offered map[string]bool

	// HTTPS reports whether the tailnet provides certificates.
	HTTPS HTTPS

	// Anonymous means that this version of tailscaled does not send the addresses of clients.
	Anonymous bool

	// Withdrawn are the services that the provider has withdrawn: another host serves all of their
	// ports. This has an effect only while the service drains, or one of the ports here does not
	// answer.
	Withdrawn map[string]bool

	// Stopping withdraws all services.
	Stopping bool

	// At is the time, for certificates that expire.
	At time.Time
}

// Services returns the plan for each service, sorted by name.
func Services(input Input) []Service {
	attachments := hosted(input.Attachments)
	out := make([]Service, 0, len(attachments))
	for _, a := range attachments {
		out = append(out, service(a.Spec, input))
	}
	slices.SortFunc(out, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Addresses returns the addresses of each service, by name. Those that cannot be parsed are left
// out.
func Addresses(attachments []v1alpha1.ServiceAttachment) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr, len(attachments))
	for _, a := range hosted(attachments) {
		for _, s := range a.Spec.Addresses {
			if addr, err := netip.ParseAddr(s); err == nil {
				out[string(a.Spec.ServiceName)] = append(out[string(a.Spec.ServiceName)], addr)
			}
		}
	}
	return out
}

// hosted returns the attachments to act on, one for each service. Attachments for other
// directions than ingress, and those being deleted, are left out. When several attachments
// claim one service, the first by name among those that have the service's addresses gets it:
// an attachment without addresses may never own the service.
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

// service returns the plan of a service: what tailscaled and the agent serve at its ports, and whether
// the machine advertises it.
func service(spec v1alpha1.ServiceAttachmentSpec, input Input) Service {
	s := Service{
		Name:    string(spec.ServiceName),
		Targets: make([]probe.Target, 0, len(spec.Ports)),
	}
	if len(spec.Addresses) > 0 {
		s.Handlers = make(Handlers, len(spec.Ports))
	}
	var remarks remarks
	for _, p := range spec.Ports {
		if hasBackend(p) {
			s.serve(spec, p, input, &remarks)
		}
	}
	slices.Sort(s.Unhealthy)
	sortTerminations(s.Terminations)
	slices.SortFunc(s.Targets, func(a, b probe.Target) int {
		return cmp.Or(cmp.Compare(a.Address(), b.Address()), cmp.Compare(a.TLS.ServerName, b.TLS.ServerName), cmp.Compare(a.TLS.Authorities, b.TLS.Authorities))
	})
	s.Targets = slices.Compact(s.Targets)
	s.advertise(spec, input, remarks)
	return s
}

// remarks are what a service's message says if it says nothing else.
type remarks struct {
	// idle are the unhealthy backends of ports that others of their backends serve.
	idle []string

	// unknownPorts are the ports with settings that this version of the agent does not know.
	unknownPorts []string
}

// message returns the message. It is empty if there is nothing to remark.
func (r remarks) message() string {
	switch {
	case len(r.idle) > 0:
		return fmt.Sprintf(messageIdle, list(slices.Compact(slices.Sorted(slices.Values(r.idle)))))
	case len(r.unknownPorts) > 0:
		return fmt.Sprintf(messageUnknownPorts, list(r.unknownPorts))
	}
	return ""
}

// serve adds what serves a port.
func (s *Service) serve(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort, input Input, r *remarks) {
	if !knows(spec, p) {
		s.Unhealthy, r.unknownPorts = append(s.Unhealthy, p.Port), append(r.unknownPorts, strconv.Itoa(int(p.Port)))
		return
	}
	b, targets := balanced(spec, p, input)
	if b == nil {
		targets = []probe.Target{target(*p.Backend, spec.HealthCheck)}
	}
	t := targets[0]
	s.Targets = append(s.Targets, targets...)
	if !slices.ContainsFunc(targets, func(t probe.Target) bool { return input.Health[t].Health != probe.Unhealthy }) {
		s.Unhealthy = append(s.Unhealthy, p.Port)
	} else if b != nil {
		r.idle = append(r.idle, unhealthy(targets, input)...)
	}
	// A service with all ports is forwarded as packets, for which a serve config has no
	// handlers.
	if p.Port == 0 || s.Handlers == nil {
		return
	}
	// Tailscaled dials only this address, even while other backends are healthy.
	if b == nil && refused(t, input) || b != nil && len(b.Backends) == 0 {
		return
	}
	h, end := handler(spec, p, t, b, input)
	if h != nil {
		s.Handlers[uint16(p.Port)] = *h
	}
	if end != nil {
		s.Terminations = append(s.Terminations, *end)
	}
}

// advertise decides whether the machine advertises the service, by the health of its targets, and says
// why.
func (s *Service) advertise(spec v1alpha1.ServiceAttachmentSpec, input Input, r remarks) {
	unknown := 0
	for _, t := range s.Targets {
		switch input.Health[t].Health {
		case probe.Healthy:
			s.Healthy++
		case probe.Unknown:
			unknown++
		case probe.Unhealthy:
		}
	}
	tls := validateTLS(spec, input)
	advertised := slices.Contains(input.Advertised, s.Name)
	switch {
	case input.Stopping:
		s.Message = messageStopping
	case len(spec.Addresses) == 0:
		// The name may belong to another service in the tailnet: the controller that creates the
		// service detects this.
		s.Message = messageNoAddress
	case tls.refused != "":
		s.Reason, s.Message = tls.reason, tls.refused
	case tls.unknown != "" && !advertised:
		s.Undecided, s.Message = true, tls.unknown
	case spec.Drain && input.Withdrawn[s.Name]:
		s.Message = messageDrained
	case s.Healthy > 0 && len(s.Unhealthy) > 0 && input.Withdrawn[s.Name]:
		s.Message = fmt.Sprintf(messageWithdrawn, list(unhealthy(s.Targets, input)))
	case s.Healthy > 0, unknown > 0 && advertised:
		s.Advertise, s.Message = true, tls.warning
		if s.Message == "" && input.Anonymous && wantsClients(spec.Ports) {
			s.Message = messageAnonymous
		}
		s.Message = cmp.Or(s.Message, r.message())
	case unknown > 0:
		s.Undecided, s.Message = true, messageProbing
	case len(s.Targets) == 0 && len(r.unknownPorts) > 0:
		s.Message = fmt.Sprintf(messageUnknownPorts, list(r.unknownPorts))
	default:
		s.Message = "No backend answers: " + list(unhealthy(s.Targets, input))
	}
}

// hasBackend reports whether a port is one to serve.
func hasBackend(p v1alpha1.AttachmentPort) bool { return p.Backend != nil || len(p.Backends) > 0 }

// knows reports whether this version of the agent knows how to reach the backends of a port. It must
// not forward what another protocol would encrypt, or trust other authorities than those named.
func knows(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort) bool {
	switch p.Protocol {
	case "", v1alpha1.AttachmentProtocolTCP, v1alpha1.AttachmentProtocolHTTP:
		return true
	case v1alpha1.AttachmentProtocolHTTPS:
		return len(p.Backends) > 0 && !slices.ContainsFunc(p.Backends, func(b v1alpha1.AttachmentShare) bool {
			_, ok := settings(spec, b)
			return !ok
		})
	}
	return false
}

// settings returns the TLS settings of a backend with the protocol HTTPS, and false if it has none, or
// names authorities that are not there.
func settings(spec v1alpha1.ServiceAttachmentSpec, b v1alpha1.AttachmentShare) (backendtls.Settings, bool) {
	if b.TLS == nil || b.TLS.ServerName == "" {
		return backendtls.Settings{}, false
	}
	out := backendtls.Settings{ServerName: b.TLS.ServerName}
	if b.TLS.Authorities == "" {
		return out, true
	}
	i := slices.IndexFunc(spec.Authorities, func(a v1alpha1.AttachmentAuthorities) bool { return a.Name == b.TLS.Authorities })
	if i < 0 || spec.Authorities[i].Certificates == "" {
		return backendtls.Settings{}, false
	}
	out.Authorities = spec.Authorities[i].Certificates
	return out, true
}

// balanced returns the backends of a port with several, or with the protocol HTTPS, and how to probe
// them all. It returns nil for another port with one. Backends whose addresses are refused are never
// dialed.
func balanced(spec v1alpha1.ServiceAttachmentSpec, p v1alpha1.AttachmentPort, input Input) (*balance.Config, []probe.Target) {
	if len(p.Backends) == 0 {
		return nil, nil
	}
	out := &balance.Config{LeastConnections: p.Strategy == v1alpha1.AttachmentStrategyLeastConnections}
	targets := make([]probe.Target, 0, len(p.Backends))
	for _, b := range p.Backends {
		t := target(b.AttachmentBackend, spec.HealthCheck)
		var tls backendtls.Settings
		if p.Protocol == v1alpha1.AttachmentProtocolHTTPS {
			tls, _ = settings(spec, b)
		}
		// Without a path the probe is a connection, whatever the settings.
		if t.Path != "" {
			t.TLS = tls
		}
		targets = append(targets, t)
		if refused(t, input) {
			continue
		}
		backend := balance.Backend{Address: dialed(t), TLS: tls, Weight: int(max(b.Weight, 1)), Priority: int(b.Priority), Health: input.Health[t].Health}
		if b.FailbackDelay != nil {
			backend.FailbackDelay = b.FailbackDelay.Duration
		}
		out.Backends = append(out.Backends, backend)
	}
	return out, targets
}

// refused reports whether a target has an address that must not be dialed.
func refused(t probe.Target, input Input) bool {
	return address.RefusedHost(t.Host) != "" || input.Health[t].Refused()
}

// unhealthy returns the unhealthy ones of targets, and why they are.
func unhealthy(targets []probe.Target, input Input) []string {
	out := make([]string, 0, len(targets))
	for _, t := range targets {
		if st := input.Health[t]; st.Health == probe.Unhealthy {
			out = append(out, fmt.Sprintf("%s (%s)", t.Address(), reason(t, st.Reason)))
		}
	}
	return out
}

// wantsClients reports whether a port needs the addresses of clients.
func wantsClients(ports []v1alpha1.AttachmentPort) bool {
	return slices.ContainsFunc(ports, func(p v1alpha1.AttachmentPort) bool {
		return hasBackend(p) && (p.Protocol.Requests() || p.ProxyProtocol != 0)
	})
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

// suffixService is the end of the DNS names of Services in the cluster.
const suffixService = ".svc"

// reason returns why a target is unhealthy, in the terms of Kubernetes instead of DNS.
func reason(t probe.Target, cause string) string {
	name, ok := strings.CutSuffix(t.Host, suffixService)
	if !ok || cause != probe.ReasonNoSuchHost {
		return cause
	}
	name, namespace, _ := strings.Cut(name, ".")
	return fmt.Sprintf("there is no Service %s/%s, or it is headless and has no ready pod", namespace, name)
}

// list joins sorted items, and adds how many items it left out.
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
