// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A ConnectionType is which way proxies carry traffic.
// +kubebuilder:validation:Enum=ingress;egress;bidirectional
type ConnectionType string

// Connection types.
const (
	// ConnectionTypeIngress is from the tailnet into the cluster.
	ConnectionTypeIngress ConnectionType = "ingress"
	// ConnectionTypeEgress is from the cluster into the tailnet.
	ConnectionTypeEgress ConnectionType = "egress"
	// ConnectionTypeBidirectional is both, each by a StatefulSet of its own.
	ConnectionTypeBidirectional ConnectionType = "bidirectional"
)

// A Proxy says how the pods of a TailscaleEndpoints look. A change of replicas
// restarts no pod that stays; any other change rolls the pods one by one.
type Proxy struct {
	// Replicas of each proxy StatefulSet. kubectl scale and autoscalers set it
	// too.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ConnectionType is which way the proxies carry traffic: ingress from the
	// tailnet into the cluster, egress from the cluster into the tailnet, or
	// bidirectional, which is a StatefulSet for each. Absent means what is asked for:
	// egress where there are endpoints or autoDiscovery, ingress where there are none;
	// beside egress also ingress while a TailscaleServices selects the object, or dns is
	// set. A change restarts no pod of a direction that stays.
	// +optional
	ConnectionType ConnectionType `json:"connectionType,omitempty"`

	ProxyPods `json:",inline"`
}

// ProxyPods say how the pods of proxies look, whatever they are for.
type ProxyPods struct {
	tailnetv1alpha1.PodSettings `json:",inline"`

	// ServiceAccountAnnotations are the annotations of the pods' service
	// account, such as those by which a cloud grants it a role.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/') && !k.startsWith('kubernetes.io/'))",message="annotations of gateway.tailscale.com and kubernetes.io are set by others; use a prefix of your own"
	// +optional
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`

	// Metrics says how Prometheus finds the pods. They always serve metrics, at
	// /metrics: tailscaled's on the port named tailscale (9002), the agent's on
	// the port named agent (9093).
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// NetworkPolicy of each proxy StatefulSet: who of the cluster may connect to
	// the pods. It takes effect where the cluster's network enforces
	// NetworkPolicies.
	// +optional
	NetworkPolicy *ProxyNetworkPolicy `json:"networkPolicy,omitempty"`
}

// A ProxyNetworkPolicy says who of the cluster may connect to proxies.
type ProxyNetworkPolicy struct {
	// Enabled makes the NetworkPolicies. Without them all of the cluster may
	// connect.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Clients that may connect to the egress ports of targets which name no
	// clients of their own. Absent means the pods of the namespace, and of Envoy
	// Gateway's namespace its proxies and our extension.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Clients []networkingv1.NetworkPolicyPeer `json:"clients,omitempty"`

	// Metrics are who may connect to the ports of metrics. Absent means all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Metrics []networkingv1.NetworkPolicyPeer `json:"metrics,omitempty"`
}

// Metrics say how Prometheus finds proxies.
// +kubebuilder:validation:XValidation:rule="!has(self.podMonitor) || self.enabled",message="podMonitor needs enabled"
type Metrics struct {
	// Enabled marks the headless Service of each proxy StatefulSet, which has
	// both ports, with the label gateway.tailscale.com/metrics: "true", so that
	// one ServiceMonitor can select them all.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// PodMonitor makes a PodMonitor (monitoring.coreos.com/v1) for each proxy
	// StatefulSet. The cluster must have the Prometheus operator's
	// CustomResourceDefinitions first: without them Crossplane stops at the
	// PodMonitor, with other changes and the status unwritten, and the condition
	// Synced says so.
	// +optional
	PodMonitor *PodMonitor `json:"podMonitor,omitempty"`
}

// A PodMonitor says how Prometheus scrapes proxies.
type PodMonitor struct {
	// Labels of the PodMonitor, beside our own, by which Prometheus selects it.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="labels of gateway.tailscale.com are set by the proxies' owner; use a prefix of your own"
	// +optional
	Labels map[string]tailnetv1alpha1.LabelValue `json:"labels,omitempty"`

	// Interval between two scrapes, such as 30s. Prometheus' own by default.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`
	// +optional
	Interval string `json:"interval,omitempty"`
}
