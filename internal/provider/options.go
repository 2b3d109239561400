// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package provider runs the provider: it creates the manager and adds the controllers, the
// metrics and the probes to it. The flags are in cmd/provider, and the controllers in
// internal/controller.
package provider

import (
	"io"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Options of a provider. They have no defaults; the flags of cmd/provider have.
type Options struct {
	// Debug enables the debug log, in addition to messages for operators.
	Debug bool

	// Log is the destination of the log. Nil means standard error.
	Log io.Writer

	// LeaderElection makes one of several replicas active. The lease is in the provider's
	// namespace.
	LeaderElection bool

	// Poll is the interval between two checks of a managed resource for drift, Sync the
	// interval between two reconciles of all objects, and PollStateMetric the interval between
	// two updates of the metrics about resources' state.
	Poll, Sync, PollStateMetric time.Duration

	// MaxReconcileRate is the maximum number of reconciles that start per second, and of
	// concurrent reconciles of a kind.
	MaxReconcileRate int

	// APIRate is the long-term maximum of requests per second with one credential to
	// Tailscale's API, and APIBurst the maximum of requests at once.
	APIRate  float64
	APIBurst int

	// CABundle is a PEM file with authorities of the API's certificate, or of a proxy in front of it, in
	// addition to those of the system. Empty means no others.
	CABundle string

	// ListMaxAge is the maximum age of a shared list of services or devices.
	ListMaxAge time.Duration

	// AllowedHosts are the hosts that ProviderConfigs of a namespace may name, in addition to
	// those of ClusterProviderConfigs: HOST, HOST:PORT or HOST:*.
	AllowedHosts []string

	// WatchNamespaces are the namespaces of the managed resources that this provider
	// reconciles. Empty means all. ClusterProviderConfigs have no namespace and are always
	// watched.
	WatchNamespaces []string

	// Namespace of the provider, in which it records the managed resources that were allowed to
	// use a tailnet. Tenants must not be able to write Secrets there.
	Namespace string

	// Images of the proxies' containers.
	Images proxy.Images

	// OperatorServices also publishes Services with the class or the annotations of Tailscale's operator,
	// which must not be installed.
	OperatorServices bool

	// ManagementPolicies enables spec.managementPolicies.
	ManagementPolicies bool

	// ChangeLogs sends every change to the service that listens on the Unix socket
	// ChangeLogsSocket.
	ChangeLogs       bool
	ChangeLogsSocket string

	// Addresses of endpoints to listen on. 0 disables an endpoint.
	MetricsAddress, HealthAddress, ProfileAddress string

	// RESTConfig of the API server. Nil means that of KUBECONFIG or of the pod.
	RESTConfig *rest.Config

	// Clock is used for all decisions that depend on time. Nil means the real clock.
	Clock clock.PassiveClock
}

func (o Options) validate() error {
	switch {
	case o.MaxReconcileRate < 1:
		return errors.New("the maximum reconcile rate must be at least 1")
	case o.APIRate <= 0 || o.APIBurst < 1:
		return errors.New("the rate and burst of requests to Tailscale's API must be above zero")
	case o.Poll <= 0 || o.Sync <= 0 || o.PollStateMetric <= 0:
		return errors.New("poll intervals must be above zero")
	case o.Namespace == "":
		return errors.New("the provider's namespace must be set")
	case o.Images.Tailscale == "" || o.Images.Agent == "":
		return errors.New("the images of the proxies must be set")
	case o.ChangeLogs && o.ChangeLogsSocket == "":
		return errors.New("change logs need a socket")
	}
	return tailscale.Hosts(o.AllowedHosts).Validate()
}
