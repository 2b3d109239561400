// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/certificates"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// Options of the extension. The help texts of its flags describe them.
type Options struct {
	// HooksAddress, EDSAddress and ObserveAddress are the addresses of the servers: HOST:PORT, or
	// unix:PATH.
	HooksAddress, EDSAddress, ObserveAddress string

	// HooksMaxMessage is the greatest size of a hook's message, in bytes. Zero means serve.HookMessage.
	HooksMaxMessage int

	// Certificates are those of the servers for hooks and endpoints.
	Certificates certificates.Options

	// EnvoyGatewayConfig is the ConfigMap with Envoy Gateway's configuration. Nil means that none is read.
	EnvoyGatewayConfig *types.NamespacedName

	// Kubeconfig is a file. Empty means the configuration of the pod.
	Kubeconfig string

	// FromFiles is a folder to read objects from instead of the Kubernetes API. Empty means the API.
	FromFiles string

	// Gateway is the only Gateway to serve. Nil means all without a dedicated extension.
	Gateway *types.NamespacedName

	// DirectTargets lets Envoys connect directly to hosts outside of tailnets.
	DirectTargets bool

	// Placeholders, Failover, Gateways, Discoveries and Probe enable tasks that write objects, and probes
	// of endpoints.
	Placeholders, Failover, Gateways, Discoveries, Probe bool

	// Namespace is the namespace of the Lease that selects the replica that writes reports. Empty means
	// that no replica does.
	Namespace string

	// Pprof serves profiles of the process.
	Pprof bool

	// OTLPEndpoint is the destination of traces. Empty means that there are none.
	OTLPEndpoint string

	// CABundle is a PEM file with authorities of the collector of traces, and of endpoints that are verified
	// by the system's authorities. Empty means those of the system alone.
	CABundle string

	// Drain is the time for which the servers answer calls during shutdown.
	Drain time.Duration
}

// kinds returns the kinds of objects to read.
func (o Options) kinds() map[string]client.Object {
	out := parse.Kinds()
	if o.Certificates.Mode == xds.ModeAuto {
		maps.Copy(out, parse.BootstrapKinds())
	}
	return out
}

// namespaces returns the namespaces to read. None stands for all.
func (o Options) namespaces() []string {
	if o.Gateway == nil {
		return nil
	}
	return []string{o.Gateway.Namespace}
}

// dialPolicy returns the addresses that Envoys may connect to directly. With files the extension
// and Envoys run on a developer's machine.
func (o Options) dialPolicy() index.DialPolicy {
	return index.DialPolicy{Direct: o.DirectTargets, Loopback: o.FromFiles != ""}
}

// restConfig returns the configuration of the API server's clients. Nil if objects are files.
func (o Options) restConfig() (*rest.Config, error) {
	switch {
	case o.FromFiles != "":
		return nil, nil
	case o.Kubeconfig == "":
		cfg, err := rest.InClusterConfig()
		return cfg, errors.Wrap(err, "cannot get Kubernetes config of the pod; outside of one give --kubeconfig or --from-files")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	return cfg, errors.Wrapf(err, "cannot read kubeconfig %q", o.Kubeconfig)
}
