// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxy builds the Kubernetes objects of a group of proxies: pods that run tailscaled
// under containerboot, with the agent as a sidecar. Its functions are pure: the same options
// return the same bytes. The settings of the tailnet are not part of the pods; they are in the
// Secrets of the Machines. Callers choose the names of objects and of Machines.
package proxy

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// PortWireGuard is where tailscaled receives peers' packets by UDP in a pod with static
// endpoints, unless its variable PORT says otherwise. It is tailscaled's usual port.
const PortWireGuard = 41641

// Directories and files that the containers of a pod share, besides those of the agent (package
// sidecar).
const (
	// DirProxiesConfig holds containerboot's files beside tailscaled's config,
	// which the agent writes.
	DirProxiesConfig = "/etc/proxies"

	// DirTLS is where the agent of an ingress pod keeps the certificates in use. The
	// tailscale container does not see it.
	DirTLS = "/etc/agent-tls"

	// FileServeConfig is the file that containerboot passes to tailscaled's serve
	// (TS_SERVE_CONFIG).
	FileServeConfig = DirProxiesConfig + "/serve-config.json"

	// FileIngressConfig is the file in which containerboot reads the cluster address of each
	// virtual IP address (TS_INGRESS_PROXIES_CONFIG_PATH). Used with Kernel networking only.
	FileIngressConfig = DirProxiesConfig + "/ingress-config.json"

	// FileSocket is the socket of tailscaled's LocalAPI.
	FileSocket = sidecar.DirRun + "/tailscaled.sock"

	// fileAgent is the agent's binary in its image.
	fileAgent = "/usr/local/bin/agent"

	dirTmp = "/tmp"
)

// Names within a pod.
const (
	ContainerTailscale = "tailscale"
	ContainerAgent     = "agent"
	ContainerNetwork   = "network"
	ContainerCheck     = "check"

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

// Options configure a group of proxies.
type Options struct {
	// Name of the StatefulSet and of its related objects.
	Name string

	// Namespace of all objects.
	Namespace string

	// Tailnet is the name of the TailscaleTailnet. It is only a label, and not on pods.
	Tailnet string

	// Pods of the group.
	Pods tailnetv1alpha1.MachineSetPods

	// Machines are all Machines whose Secrets the pods may read: those desired, and those being
	// deleted.
	Machines []string

	// CertificateSecrets are the Secrets whose certificates the agents of an ingress group use.
	CertificateSecrets []string

	// AccountAnnotations are annotations of the service account.
	AccountAnnotations map[string]string

	// Metrics marks the Service for scraping.
	Metrics bool

	// PodMonitor configures how the Prometheus operator scrapes the pods.
	PodMonitor PodMonitorOptions

	// NetworkPolicy limits the sources that may connect to the pods.
	NetworkPolicy NetworkPolicyOptions
}

// Images of the containers.
type Images struct {
	// Tailscale is the default image. It must contain containerboot.
	Tailscale string

	// Agent is the image of the agent. It also prepares the network of pods with Kernel
	// networking, for which it may be privileged: only the provider's configuration can set it.
	Agent string

	// PullSecrets are the names of pull secrets, in the namespace of the pods, of proxies that set none.
	PullSecrets []string
}

func (o Options) egress() bool { return o.Pods.Direction == tailnetv1alpha1.DirectionEgress }

func (o Options) kernel() bool { return o.Pods.Networking == tailnetv1alpha1.NetworkingKernel }

func (o Options) podSysctl() bool { return o.Pods.Forwarding == tailnetv1alpha1.ForwardingPodSysctl }

// Labels returns the labels of every object of the group except its pods.
func (o Options) Labels() map[string]string {
	l := o.PodLabels()
	l[meta.LabelTailnet] = o.Tailnet
	return l
}

// PodLabels returns the labels that select the group's pods. They never change.
func (o Options) PodLabels() map[string]string {
	return map[string]string{
		meta.LabelEndpoints: o.Pods.Endpoints,
		meta.LabelDirection: strings.ToLower(string(o.Pods.Direction)),
	}
}

func (o Options) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: o.Labels()}
}
