// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A Tailnet is the state of the pod's tailscaled in its tailnet.
type Tailnet struct {
	// Running reports whether tailscaled is connected to control.
	Running bool

	// Accepted are the services that control accepted this machine for.
	Accepted map[string]bool

	// AcceptedKnown reports that control has not accepted this machine for the others.
	AcceptedKnown bool

	// Served are the ports of each service in the pod's serve config.
	Served map[string][]string

	// Version is the version that tailscaled reports. Empty if it has reported none.
	Version string

	// Polled reports that tailscaled's notifications cannot be read.
	Polled bool

	// Readvertised is how often each service was withdrawn and advertised again.
	Readvertised map[string]int

	// Routed reports whether a host of each service is primary.
	Routed map[string]v1alpha1.Routing
}

// Status returns the status to report of services.
func Status(podIP string, services []Service, tn Tailnet) *v1alpha1.MachineAgentStatus {
	out := &v1alpha1.MachineAgentStatus{
		PodIP: podIP, TailscaledVersion: reported(tn.Version), Polled: tn.Polled,
		AcceptanceUnknown: tn.Running && !tn.AcceptedKnown,
	}
	for _, s := range services {
		out.Services = append(out.Services, v1alpha1.HostedService{
			Name:             s.Name,
			Advertised:       s.Advertise,
			Accepted:         tn.Accepted[s.Name],
			Routed:           tn.Routed[s.Name],
			Readvertisements: int32(tn.Readvertised[s.Name]),
			HealthyBackends:  int32(s.Healthy),
			TotalBackends:    int32(len(s.Targets)),
			Ports:            tn.Served[s.Name],
			UnhealthyPorts:   servicePorts(s.Unhealthy),
			Reason:           string(s.Reason),
			Message:          text.Cut(message(s, tn), maxMessage),
		})
	}
	return out
}

// Served returns the ports of handlers, by service. A service without handlers that the kernel
// forwards has all ports.
func Served(handlers map[string]Handlers, forwards Forwards) map[string][]string {
	out := make(map[string][]string, len(handlers))
	for name, hs := range handlers {
		ports := make([]int32, 0, len(hs))
		for p := range hs {
			ports = append(ports, int32(p))
		}
		if _, ok := forwards[name]; ok && len(ports) == 0 {
			ports = append(ports, 0)
		}
		slices.Sort(ports)
		out[name] = servicePorts(ports)
	}
	return out
}

// servicePorts returns ports of an attachment as a service has them, or nil if there are none.
func servicePorts(ports []int32) []string {
	var out []string
	for _, p := range ports {
		out = append(out, string(v1alpha1.ServicePortOf(p)))
	}
	return out
}

func message(s Service, tn Tailnet) string {
	switch {
	case s.Message != "":
		return s.Message
	case !tn.Running:
		return messageNotInTailnet
	case !tn.Accepted[s.Name] && tn.AcceptedKnown:
		return messageNotAccepted
	case tn.Routed[s.Name] == v1alpha1.RoutingFalse:
		return messageNotRouted
	default:
		return ""
	}
}

// maxMessage bounds the message of a service, in bytes. The schema allows some more.
const maxMessage = 4000

// maxVersion bounds the reported part of a version.
const maxVersion = 64

// reported returns a version as the Machine's status has it.
func reported(version string) string {
	if len(version) > maxVersion {
		version = strings.ToValidUTF8(version[:maxVersion], "")
	}
	return version
}
