// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Networking is the way in which tailscaled reaches the network.
// +kubebuilder:validation:Enum=Userspace;Kernel
type Networking string

// Networking modes.
const (
	// NetworkingUserspace needs no privileges. It supports TCP.
	NetworkingUserspace Networking = "Userspace"
	// NetworkingKernel routes packets through a TUN device. It supports UDP, too, and is
	// faster. The pods need NET_ADMIN, and an init container that enables IP forwarding.
	NetworkingKernel Networking = "Kernel"
)

// Forwarding is the way in which IP forwarding is enabled in pods with Kernel networking.
// +kubebuilder:validation:Enum=InitContainer;PodSysctl
type Forwarding string

// Ways to enable IP forwarding.
const (
	// ForwardingInitContainer uses a privileged init container.
	ForwardingInitContainer Forwarding = "InitContainer"
	// ForwardingPodSysctl uses a sysctl of the pod.
	ForwardingPodSysctl Forwarding = "PodSysctl"
)

// KernelSettings are settings of pods with Kernel networking.
type KernelSettings struct {
	// Privileged runs the tailscale container privileged, for container runtimes that deny
	// /dev/net/tun to other containers: runc 1.2.0 to 1.2.3, and Talos. A privileged container
	// can take over its node, so the namespace's entry in allowedNamespaces.grants of the
	// tailnet must allow it by privilegedContainers. The default is false.
	// +optional
	Privileged *bool `json:"privileged,omitempty"`
}

// MachineSetPods configures the pods that run the machines of a MachineSet.
type MachineSetPods struct {
	// Replicas is the number of desired pods. Zero deletes all pods, and keeps their
	// StatefulSet.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas int32 `json:"replicas"`

	Direction Direction `json:"direction"`

	// Endpoints is the name of the TailscaleEndpoints, whose ServiceAttachments the agents
	// serve.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Endpoints string `json:"endpoints"`

	// ServiceName is the headless Service that governs the StatefulSet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName"`

	// DNSConfigMap is the name of the ConfigMap with the names that the agents of ingress pods
	// resolve for the tailnet. Absent means none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	DNSConfigMap string `json:"dnsConfigMap,omitempty"`

	PodSettings `json:",inline"`
}

// A NodeAddressType is a type of the addresses of nodes.
// +kubebuilder:validation:Enum=ExternalIP;InternalIP
type NodeAddressType string

// Types of the addresses of nodes.
const (
	NodeExternalIP NodeAddressType = "ExternalIP"
	NodeInternalIP NodeAddressType = "InternalIP"
)

// StaticEndpoints are addresses that a proxy announces to its peers: those of nodes, with the
// port of a Service of type NodePort that leads to the proxy's pod. Peers still use WireGuard.
// Firewalls must let UDP to the cluster's range of node ports pass, 30000 to 32767 by default.
type StaticEndpoints struct {
	// NodeSelector selects, by label, the nodes whose addresses are announced. At most two
	// addresses are, of ready nodes first. Absent means all nodes.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// AddressType is the type of the nodes' addresses: ExternalIP, or InternalIP where peers
	// reach the nodes' network.
	// +kubebuilder:default=ExternalIP
	// +optional
	AddressType NodeAddressType `json:"addressType,omitempty"`
}

// PodSettings are settings of the pods of proxies. Only networking Kernel gives them
// privileges.
type PodSettings struct {
	// Networking is the way in which tailscaled reaches the network. Userspace needs no
	// privileges and complies with the PodSecurity level restricted. Kernel supports UDP, too,
	// and is faster; its pods need NET_ADMIN and a privileged init container.
	// +kubebuilder:default=Userspace
	// +optional
	Networking Networking `json:"networking,omitempty"`

	// Forwarding is the way in which IP forwarding is enabled in pods with Kernel networking.
	// InitContainer is a privileged init container. PodSysctl is the pod's sysctl
	// net.ipv4.ip_forward, for IPv4 only; kubelet must allow it (--allowed-unsafe-sysctls), and
	// no container is privileged then.
	// +kubebuilder:default=InitContainer
	// +optional
	Forwarding Forwarding `json:"forwarding,omitempty"`

	// Kernel has settings of pods with Kernel networking. It has no effect with Userspace.
	// +optional
	Kernel *KernelSettings `json:"kernel,omitempty"`

	// EgressIdleTimeout is how long a connection into the tailnet may be idle before an egress
	// proxy closes it. It ends connections to nodes that no longer answer while the client sends
	// nothing. In any case, those to nodes that have left the tailnet end after a minute, and those to
	// a service after a second once another node hosts it. TCP keepalives do not count as traffic. It
	// has no effect with Kernel networking. Absent means 24h, and 0s means no timeout.
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be 0s, or between 1m and 168h"
	// +optional
	EgressIdleTimeout *metav1.Duration `json:"egressIdleTimeout,omitempty"`

	// EgressTraces is the OpenTelemetry collector to which egress proxies send a span for each dial of a
	// target in the tailnet, by OTLP over gRPC: HOST:PORT without TLS, or https://HOST:PORT. The span is a
	// child of the request's that the connection begins with, such as Envoy's, if that has a sampled
	// traceparent header and is not encrypted. It has no effect with Kernel networking. Absent means no
	// spans.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(https?://)?[A-Za-z0-9\[][-A-Za-z0-9.:\]]*:[0-9]{1,5}$`
	// +optional
	EgressTraces string `json:"egressTraces,omitempty"`

	// StaticEndpoints gives each pod a port on the cluster's nodes, by which peers can connect
	// to it directly where they could only reach it through a relay. The namespace's grant and
	// the provider's permissions must allow it. Absent means none.
	// +optional
	StaticEndpoints *StaticEndpoints `json:"staticEndpoints,omitempty"`

	// Image of the tailscale container. It must contain containerboot. Tests run with the versions
	// of tailscaled that docs/compatibility.md lists. With another one, the condition
	// TailscaledTested is False, and what that version does not report counts as unknown. Absent
	// means the image of the provider's configuration.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// Resources of the tailscale container. The default is small requests and no limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// AgentResources are the resources of the agent, the container beside tailscaled that
	// probes backends and writes tailscaled's configuration. The default is small requests and
	// no limits.
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

	// TopologySpreadConstraints of the pods. A constraint without a labelSelector counts the
	// pods of this StatefulSet. By default, the pods spread over zones and hosts if possible,
	// and are scheduled in any case.
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName of the pods. Absent means the cluster's default.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ImagePullSecrets of the pods, in their namespace. Absent means those in the provider's
	// configuration.
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Labels of the pods, in addition to the provider's labels.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="labels of gateway.tailscale.com are reserved; use another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('statefulset.kubernetes.io/') && !k.startsWith('apps.kubernetes.io/') && k != 'controller-revision-hash')",message="labels of statefulset.kubernetes.io and apps.kubernetes.io, and controller-revision-hash, are set by Kubernetes"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of the pods, in addition to the provider's annotations.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/'))",message="annotations of gateway.tailscale.com are reserved; use another prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/'))",message="AppArmor annotations are not allowed; the pods use the container runtime's profile"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Env are additional environment variables of the tailscale container, such as PORT,
	// HTTPS_PROXY, or the TS_DEBUG_ variables of tailscaled.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// SecurityContext of the pods. Pods with Userspace networking comply with the PodSecurity
	// level restricted whatever it contains. With Kernel networking, both containers run as
	// root, and runAsUser and runAsGroup have no effect.
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
	// Name of the variable. Variables that configure containerboot, such as TS_AUTHKEY,
	// TS_EXTRA_ARGS or TS_USERSPACE, are refused: use the other fields of this object instead.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(POD_|KUBERNETES_|EXPERIMENTAL_|TS_(AUTH|CERT_SHARE|CLIENT_|EGRESS_|EXPERIMENTAL_|INGRESS_|KUBE|STATE|TAILNET_TARGET_|TEST_))') && !self.matches('^(HOME|TS_(ACCEPT_DNS|AUDIENCE|DEST_IP|ENABLE_HEALTH_CHECK|ENABLE_METRICS|EXTRA_ARGS|HEALTHCHECK_ADDR_PORT|HOSTNAME|ID_TOKEN|INTERNAL_APP|LOCAL_ADDR_PORT|OUTBOUND_HTTP_PROXY_LISTEN|ROUTES|SERVE_CONFIG|SOCKET|SOCKS5_SERVER|TAILSCALED_EXTRA_ARGS|USERSPACE))$')",message="is reserved for the configuration of the proxy; remove it"
	Name string `json:"name"`

	// Value of the variable. Absent means empty.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Value string `json:"value,omitempty"`

	// ValueFrom is the source of the value, read when the container starts.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// An EnvVarSource is the source of an environment variable's value.
// +kubebuilder:validation:XValidation:rule="[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef)].exists_one(x, x)",message="set exactly one of secretKeyRef, configMapKeyRef and fieldRef"
type EnvVarSource struct {
	// SecretKeyRef references a key of a Secret of the same namespace.
	// +optional
	SecretKeyRef *corev1.SecretKeySelector `json:"secretKeyRef,omitempty"`

	// ConfigMapKeyRef references a key of a ConfigMap of the same namespace.
	// +optional
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`

	// FieldRef references a field of the pod, such as spec.nodeName.
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}

// A PodSecurityContext holds the configurable part of the pods' security context.
type PodSecurityContext struct {
	// RunAsUser is the user ID of both containers. It is the same for both, because tailscaled
	// lets only its own user change its configuration.
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

	// SupplementalGroups are additional group IDs of both containers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=2147483647
	// +optional
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`

	// SELinuxOptions of both containers. Absent means the container runtime's choice.
	// +optional
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty"`
}

// SELinuxOptions are the SELinux options that the PodSecurity level restricted allows.
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
