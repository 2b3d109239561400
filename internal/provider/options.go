// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package provider runs the provider: it makes the manager and adds the
// controllers, the metrics and the probes to it. Flags are read in cmd/provider;
// what controllers do lives in internal/controller.
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

// Options of a provider. They have no defaults of their own: cmd/provider's flags
// have.
type Options struct {
	// Debug logs what is done, and not only what an operator must act on.
	Debug bool

	// Log is where the log goes; nil means standard error.
	Log io.Writer

	// LeaderElection lets only one of several replicas work. The lease is in
	// the namespace that the provider runs in.
	LeaderElection bool

	// Poll is how often each managed resource is checked for drift, Sync how
	// often all objects are reconciled, changed or not, and PollStateMetric how
	// often metrics of resources' state are recorded.
	Poll, Sync, PollStateMetric time.Duration

	// MaxReconcileRate is how many reconciles a second may start, and how many of
	// a kind may run at once.
	MaxReconcileRate int

	// APIRate is how many requests a second one credential may send to
	// Tailscale's API at length, APIBurst how many at once.
	APIRate  float64
	APIBurst int

	// ListMaxAge is how old a shared list of services or devices may be.
	ListMaxAge time.Duration

	// AllowedHosts are the hosts that ProviderConfigs of a namespace may name, beside those
	// that ClusterProviderConfigs do: HOST, HOST:PORT or HOST:*.
	AllowedHosts []string

	// WatchNamespaces are the namespaces of the managed resources that this
	// provider works on; none means all. ClusterProviderConfigs have no
	// namespace and are always seen.
	WatchNamespaces []string

	// Namespace of the provider, where it records which managed resources were
	// allowed to act on a tailnet. Tenants must not be able to write Secrets there.
	Namespace string

	// Images of the proxies' containers.
	Images proxy.Images

	// ManagementPolicies lets spec.managementPolicies leave out actions.
	ManagementPolicies bool

	// ChangeLogs sends every change to the service that listens on the Unix
	// socket ChangeLogsSocket.
	ChangeLogs       bool
	ChangeLogsSocket string

	// Addresses of endpoints to listen on; 0 turns one off.
	MetricsAddress, HealthAddress, ProfileAddress string

	// RESTConfig of the API server; nil means that of KUBECONFIG or of the pod.
	RESTConfig *rest.Config

	// Clock of everything that depends on the time; nil means the
	// real one.
	Clock clock.PassiveClock
}

func (o Options) validate() error {
	switch {
	case o.MaxReconcileRate < 1:
		return errors.New("the maximum reconcile rate must be 1 at least")
	case o.APIRate <= 0 || o.APIBurst < 1:
		return errors.New("the rate and burst of requests to Tailscale's API must be above zero")
	case o.Poll <= 0 || o.Sync <= 0 || o.PollStateMetric <= 0:
		return errors.New("poll intervals must be above zero")
	case o.Namespace == "":
		return errors.New("the provider's namespace must be known")
	case o.Images.Tailscale == "" || o.Images.Agent == "":
		return errors.New("the images of the proxies must be known")
	case o.ChangeLogs && o.ChangeLogsSocket == "":
		return errors.New("change logs need a socket to be sent to")
	}
	return tailscale.Hosts(o.AllowedHosts).Validate()
}
