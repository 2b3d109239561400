// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxy builds the Kubernetes objects of a group of proxies: pods that
// run tailscaled under containerboot, with our agent beside it. Its functions are
// pure: the same options give the same bytes. What a pod is told of its tailnet
// is not here; that is in the Secrets of its Machine. Names of objects and of
// Machines are chosen by who calls.
package proxy

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Ports of a proxy pod.
const (
	// PortAgent serves the agent's probes and metrics.
	PortAgent = 9093

	// PortDNS is where the agent resolves names for the tailnet. It listens on the
	// loopback, where tailscaled leads who asks at the machine's address there, or with
	// Kernel networking at that address.
	PortDNS = 53

	// PortContainerboot serves containerboot's health and tailscaled's metrics
	// (containerboot's own default).
	PortContainerboot = 9002
)

// Paths of the agent's HTTP servers. PathPreStop is at FileHooks, which only the pod's
// own processes reach: nobody else may withdraw services. The others are at PortAgent
// and change nothing.
const (
	PathStartup   = "/startupz"
	PathLiveness  = "/healthz"
	PathReadiness = "/readyz"
	PathMetrics   = "/metrics"
	PathDrained   = "/drainedz"
	PathPreStop   = "/prestop"
)

// Directories and files that the containers of a pod share.
const (
	// DirTailscaledConfig holds a directory per pod name, which the agent
	// writes and containerboot reads (TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR).
	DirTailscaledConfig = "/etc/tsconfig"

	// DirProxiesConfig holds containerboot's files beside tailscaled's config,
	// which the agent writes.
	DirProxiesConfig = "/etc/proxies"

	// DirTLS is where the agent of an ingress pod keeps the certificates in use. The
	// tailscale container does not see it.
	DirTLS = "/etc/agent-tls"

	// FileServeConfig is what containerboot gives to tailscaled's serve
	// (TS_SERVE_CONFIG).
	FileServeConfig = DirProxiesConfig + "/serve-config.json"

	// FileIngressConfig is where containerboot reads which virtual IP goes to
	// which address of the cluster (TS_INGRESS_PROXIES_CONFIG_PATH). With Kernel
	// networking only.
	FileIngressConfig = DirProxiesConfig + "/ingress-config.json"

	// DirRun holds tailscaled's socket. It is where the tailscale command looks
	// for it without a flag.
	DirRun = "/var/run/tailscale"

	// FileSocket is the socket of tailscaled's LocalAPI.
	FileSocket = DirRun + "/tailscaled.sock"

	// FileHooks is the socket of the agent's hooks.
	FileHooks = DirTailscaledConfig + "/agent.sock"

	// fileAgent is the agent's program in its image.
	fileAgent = "/usr/local/bin/agent"

	dirTmp = "/tmp"
)

// Names within a pod.
const (
	ContainerTailscale = "tailscale"
	ContainerAgent     = "agent"
	ContainerNetwork   = "network"

	volumeTailscaledConfig = "tailscaledconfig"
	volumeProxiesConfig    = "proxies-config"
	volumeTLS              = "agent-tls"
	volumeRun              = "tailscale-run"
	volumeTmp              = "tmp"
)

// Values of the label gateway.tailscale.com/direction.
const (
	DirectionIngress = "ingress"
	DirectionEgress  = "egress"
)

// Options of a group of proxies.
type Options struct {
	// Name of the StatefulSet and of what belongs to it.
	Name string

	// Namespace of all objects.
	Namespace string

	// Tailnet is the name of the TailscaleTailnet. It is a label only, and not
	// one of the pods.
	Tailnet string

	// Pods of the group.
	Pods tailnetv1alpha1.MachineSetPods

	// Machines are all those whose Secrets pods may read: the wanted, and those
	// that are about to go.
	Machines []string

	// CertificateSecrets are the Secrets whose certificates the agents of an
	// ingress group serve with.
	CertificateSecrets []string

	// AccountAnnotations are those of the service account.
	AccountAnnotations map[string]string

	// Metrics marks the Service as one to scrape.
	Metrics bool

	// PodMonitor says how the Prometheus operator scrapes the pods.
	PodMonitor PodMonitorOptions

	// NetworkPolicy says who may connect to the pods.
	NetworkPolicy NetworkPolicyOptions
}

// Images of the containers.
type Images struct {
	// Tailscale must hold containerboot. It is that of pods which name none.
	Tailscale string

	// Agent is the image of our agent. It also prepares the network of pods with Kernel
	// networking, for which it may be privileged: nobody but who configures the provider
	// chooses it.
	Agent string
}

func (o Options) egress() bool { return o.Pods.Direction == tailnetv1alpha1.DirectionEgress }

func (o Options) kernel() bool { return o.Pods.Networking == tailnetv1alpha1.NetworkingKernel }

func (o Options) podSysctl() bool { return o.Pods.Forwarding == tailnetv1alpha1.ForwardingPodSysctl }

// Labels of every object of the group but its pods.
func (o Options) Labels() map[string]string {
	l := o.PodLabels()
	l[meta.LabelTailnet] = o.Tailnet
	return l
}

// PodLabels are what selects the group's pods. They never change.
func (o Options) PodLabels() map[string]string {
	return map[string]string{
		meta.LabelEndpoints: o.Pods.Endpoints,
		meta.LabelDirection: strings.ToLower(string(o.Pods.Direction)),
	}
}

func (o Options) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: o.Labels()}
}
