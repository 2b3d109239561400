// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Networking is how tailscaled reaches the network.
// +kubebuilder:validation:Enum=Userspace;Kernel
type Networking string

// Networking modes.
const (
	// NetworkingUserspace needs no privilege. It carries TCP.
	NetworkingUserspace Networking = "Userspace"
	// NetworkingKernel routes packets by a TUN device: UDP too, and faster. The
	// pods need NET_ADMIN, and an init container that turns on IP forwarding.
	NetworkingKernel Networking = "Kernel"
)

// Forwarding is how IP forwarding is turned on in pods with Kernel networking.
// +kubebuilder:validation:Enum=InitContainer;PodSysctl
type Forwarding string

// Ways to turn on IP forwarding.
const (
	// ForwardingInitContainer is a privileged init container.
	ForwardingInitContainer Forwarding = "InitContainer"
	// ForwardingPodSysctl is a sysctl of the pod.
	ForwardingPodSysctl Forwarding = "PodSysctl"
)

// MachineSetPods are the pods that run the machines of a MachineSet.
type MachineSetPods struct {
	// Replicas that are to run. Zero has all pods go, and keeps their StatefulSet.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas int32 `json:"replicas"`

	Direction Direction `json:"direction"`

	// Endpoints is the name of the TailscaleEndpoints, whose ServiceAttachments
	// the agents act on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Endpoints string `json:"endpoints"`

	// ServiceName is the headless Service that governs the StatefulSet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName"`

	// DNSConfigMap says which names the agents of ingress pods resolve for the
	// tailnet. Absent means none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	DNSConfigMap string `json:"dnsConfigMap,omitempty"`

	PodSettings `json:",inline"`
}

// PodSettings are settings of the pods of proxies. None gives them privilege but
// networking Kernel.
type PodSettings struct {
	// Networking is how tailscaled reaches the network. Userspace needs no
	// privilege and passes the PodSecurity level restricted. Kernel carries UDP
	// too and is faster; its pods need NET_ADMIN and a privileged init container.
	// +kubebuilder:default=Userspace
	// +optional
	Networking Networking `json:"networking,omitempty"`

	// Forwarding is how pods with Kernel networking get IP forwarding turned on.
	// InitContainer is a privileged init container. PodSysctl is the pod's sysctl
	// net.ipv4.ip_forward, for IPv4 only; kubelet must allow it
	// (--allowed-unsafe-sysctls), and no container is privileged then.
	// +kubebuilder:default=InitContainer
	// +optional
	Forwarding Forwarding `json:"forwarding,omitempty"`

	// EgressIdleTimeout is how long a connection into the tailnet may carry nothing
	// before an egress proxy cuts it. Without it a connection whose node has vanished
	// stays until its client sends something. Keepalives of TCP are no traffic: leave
	// it out, or choose hours, where connections are idle for long on purpose. With
	// Kernel networking it means nothing. Never by default.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	// +optional
	EgressIdleTimeout *metav1.Duration `json:"egressIdleTimeout,omitempty"`

	// Image of the tailscale container. It must hold containerboot. That of the
	// provider's configuration by default.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// Resources of the tailscale container. Small requests and no limits by
	// default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// AgentResources are the resources of the agent, the container beside
	// tailscaled that probes backends and writes its configuration. Small
	// requests and no limits by default.
	// +optional
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`

	// NodeSelector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the pods.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints of the pods. One without a labelSelector counts
	// the pods of this StatefulSet. By default the pods spread over zones and
	// over hosts, but none stays unscheduled for it.
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName of the pods. The cluster's default by default.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ImagePullSecrets of the pods.
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Labels of the pods, beside our own.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="labels of gateway.tailscale.com are set by the proxies' owner; use a prefix of your own"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('statefulset.kubernetes.io/') && !k.startsWith('apps.kubernetes.io/') && k != 'controller-revision-hash')",message="labels of statefulset.kubernetes.io and apps.kubernetes.io, and controller-revision-hash, are set by Kubernetes"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of the pods, beside our own.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="annotations of gateway.tailscale.com are set by the proxies' owner; use a prefix of your own"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/'))",message="annotations of AppArmor take profiles away; the pods run with the container runtime's"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Env are more environment variables of the tailscale container, such as
	// PORT, HTTPS_PROXY, or TS_DEBUG_ variables of tailscaled.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// SecurityContext of the pods. Whatever it says, pods with Userspace
	// networking pass the PodSecurity level restricted. With Kernel networking
	// both containers run as root: runAsUser and runAsGroup mean nothing.
	// +optional
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`
}

// A LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// An EnvVar is an environment variable of the tailscale container.
// +kubebuilder:validation:XValidation:rule="!has(self.value) || !has(self.valueFrom)",message="set value or valueFrom, not both"
type EnvVar struct {
	// Name of the variable. Those by which containerboot is configured, such as
	// TS_AUTHKEY, TS_EXTRA_ARGS or TS_USERSPACE, are refused: the other fields
	// of this object say what they would say.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(POD_|KUBERNETES_|EXPERIMENTAL_|TS_(AUTH|CERT_SHARE|CLIENT_|EGRESS_|EXPERIMENTAL_|INGRESS_|KUBE|STATE|TAILNET_TARGET_|TEST_))') && !self.matches('^(HOME|TS_(ACCEPT_DNS|AUDIENCE|DEST_IP|ENABLE_HEALTH_CHECK|ENABLE_METRICS|EXTRA_ARGS|HEALTHCHECK_ADDR_PORT|HOSTNAME|ID_TOKEN|INTERNAL_APP|LOCAL_ADDR_PORT|OUTBOUND_HTTP_PROXY_LISTEN|ROUTES|SERVE_CONFIG|SOCKET|SOCKS5_SERVER|TAILSCALED_EXTRA_ARGS|USERSPACE))$')",message="is how this proxy's own configuration reaches the container; remove it"
	Name string `json:"name"`

	// Value of the variable. Empty by default.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Value string `json:"value,omitempty"`

	// ValueFrom is where the value is read from when the container starts.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// An EnvVarSource is where the value of an environment variable is read from.
// +kubebuilder:validation:XValidation:rule="[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef)].exists_one(x, x)",message="set exactly one of secretKeyRef, configMapKeyRef and fieldRef"
type EnvVarSource struct {
	// SecretKeyRef is a key of a Secret of the same namespace.
	// +optional
	SecretKeyRef *corev1.SecretKeySelector `json:"secretKeyRef,omitempty"`

	// ConfigMapKeyRef is a key of a ConfigMap of the same namespace.
	// +optional
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`

	// FieldRef is a field of the pod, such as spec.nodeName.
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}

// A PodSecurityContext is what may be chosen of the pods' security context.
type PodSecurityContext struct {
	// RunAsUser is the user ID of both containers. Tailscaled lets only its own
	// user change its configuration, so it is one for both.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// RunAsGroup is the primary group ID of both containers.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// FSGroup is the group ID that owns the pods' volumes.
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// SupplementalGroups are more group IDs of both containers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=2147483647
	// +optional
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`

	// SELinuxOptions of both containers. The container runtime's choice by
	// default.
	// +optional
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty"`
}

// SELinuxOptions are what the PodSecurity level restricted lets one choose of a
// pod's SELinux context.
type SELinuxOptions struct {
	// Level, such as s0:c123,c456.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Level string `json:"level,omitempty"`

	// Type of the context.
	// +kubebuilder:validation:Enum=container_t;container_init_t;container_kvm_t;container_engine_t
	// +optional
	Type string `json:"type,omitempty"`
}
