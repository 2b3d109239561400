// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A ConnectionType is the direction in which proxies carry traffic.
// +kubebuilder:validation:Enum=ingress;egress;bidirectional
type ConnectionType string

// Connection types.
const (
	// ConnectionTypeIngress is from the tailnet into the cluster.
	ConnectionTypeIngress ConnectionType = "ingress"
	// ConnectionTypeEgress is from the cluster into the tailnet.
	ConnectionTypeEgress ConnectionType = "egress"
	// ConnectionTypeBidirectional is both directions, with a separate StatefulSet for each.
	ConnectionTypeBidirectional ConnectionType = "bidirectional"
)

// A Proxy configures the pods of a TailscaleEndpoints. A change of replicas restarts no
// remaining pod; any other change restarts the pods one by one.
type Proxy struct {
	// Replicas of each proxy StatefulSet. kubectl scale and autoscalers set it, too.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ConnectionType is the direction in which the proxies carry traffic: ingress from the
	// tailnet into the cluster, egress from the cluster into the tailnet, or bidirectional,
	// with a StatefulSet for each direction. Absent means the directions that are in use:
	// egress if endpoints or autoDiscovery is set, ingress if neither is; with egress also
	// ingress, while a TailscaleServices selects the object or dns is set. A change restarts no
	// pod of a direction that remains.
	// +optional
	ConnectionType ConnectionType `json:"connectionType,omitempty"`

	ProxyPods `json:",inline"`
}

// ProxyPods configures the pods of proxies.
type ProxyPods struct {
	tailnetv1alpha1.PodSettings `json:",inline"`

	// ServiceAccountAnnotations are annotations of the pods' service account, for example to
	// grant it a role of a cloud provider.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/') && !k.startsWith('kubernetes.io/'))",message="annotations of gateway.tailscale.com and kubernetes.io are reserved; use another prefix"
	// +optional
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`

	// Metrics configures how Prometheus finds the pods. The pods always serve metrics at
	// /metrics: tailscaled on the port named tailscale (9002), the agent on the port named
	// agent (9093).
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// NetworkPolicy configures the NetworkPolicy of each proxy StatefulSet, which limits the
	// sources in the cluster that may connect to the pods. It takes effect if the cluster's
	// network enforces NetworkPolicies.
	// +optional
	NetworkPolicy *ProxyNetworkPolicy `json:"networkPolicy,omitempty"`
}

// A ProxyNetworkPolicy limits the sources in the cluster that may connect to proxies.
type ProxyNetworkPolicy struct {
	// Enabled creates the NetworkPolicies. Without them, the whole cluster may connect.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Clients that may connect to the egress ports of targets without clients. Absent means the
	// pods of the namespace, and in Envoy Gateway's namespace the Envoy proxies and the
	// extension.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Clients []networkingv1.NetworkPolicyPeer `json:"clients,omitempty"`

	// Metrics lists the sources that may connect to the metrics ports. Absent means all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Metrics []networkingv1.NetworkPolicyPeer `json:"metrics,omitempty"`
}

// Metrics configures how Prometheus finds proxies.
// +kubebuilder:validation:XValidation:rule="!has(self.podMonitor) || self.enabled",message="podMonitor needs enabled"
type Metrics struct {
	// Enabled sets the label gateway.tailscale.com/metrics: "true" on the headless Service of
	// each proxy StatefulSet, which has both metrics ports, so that one ServiceMonitor can
	// select them all.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// PodMonitor creates a PodMonitor (monitoring.coreos.com/v1) for each proxy StatefulSet.
	// Install the Prometheus operator's CustomResourceDefinitions in the cluster first. Without
	// them, Crossplane stops at the PodMonitor, applies no other change, does not update the
	// status, and reports the error in the condition Synced.
	// +optional
	PodMonitor *PodMonitor `json:"podMonitor,omitempty"`
}

// A PodMonitor configures how Prometheus scrapes proxies.
type PodMonitor struct {
	// Labels of the PodMonitor that Prometheus selects it by, in addition to the provider's
	// labels.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="labels of gateway.tailscale.com are reserved; use another prefix"
	// +optional
	Labels map[string]tailnetv1alpha1.LabelValue `json:"labels,omitempty"`

	// Interval between two scrapes, such as 30s. Absent means Prometheus' default.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`
	// +optional
	Interval string `json:"interval,omitempty"`
}
