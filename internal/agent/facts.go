// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// facts are what roles know of their pod in one step of the loop.
type facts struct {
	tailnet localapi.State

	// attachments are those of the endpoints, once listed, and services is the plan for them.
	attachments []v1alpha1.ServiceAttachment
	services    []plan.Service
	listed      bool

	// certificates are the certificates in use from Secrets and from Tailscale. Nil until all roles have
	// prepared.
	certificates map[plan.CertificateRef]plan.Certificate

	// base is tailscaled's config without the advertised services. Nil until known.
	base []byte

	// advertised are the services that the config on disk advertises, and handlers those that the
	// serve config on disk has.
	advertised []string
	handlers   map[string]plan.Handlers

	// stateSeen reports whether the state Secret, or that there is none, was seen, and stateLost
	// whether it was seen without a node's identity.
	stateSeen, stateLost bool

	// watched are the node IDs of the hosts that the machine watches as their witness.
	watched []string

	// handover is the provider's answer to a pod that is being stopped.
	handover meta.Handover

	// draining reports whether there is a drain, under way or over, and closing whether clients must
	// not open connections any more.
	draining, closing bool
}

// hasClients reports whether an advertised service may have clients.
func (f facts) hasClients(name string) bool {
	return f.tailnet.Accepted[name] || f.tailnet.Running && !f.tailnet.AcceptedKnown
}

// isPending reports whether the pod is to host a service and control has not accepted it. An unknown
// acceptance is not pending: tailscaled may not report it. A service without a backend that answers is not
// to be hosted.
func (f facts) isPending(s plan.Service) bool {
	if !s.Advertise {
		return s.Undecided
	}
	return !slices.Contains(f.advertised, s.Name) || f.tailnet.AcceptedKnown && !f.tailnet.Accepted[s.Name]
}

// https reports whether the tailnet provides certificates.
func (f facts) https() plan.HTTPS {
	switch {
	case !f.tailnet.Running || !f.tailnet.HTTPSKnown:
		return plan.HTTPSUnknown
	case f.tailnet.HTTPS:
		return plan.HTTPSOn
	default:
		return plan.HTTPSOff
	}
}
