// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An AttachmentBackend is where one port of a service ends.
type AttachmentBackend struct {
	// Host is a DNS name or an address, such as web.default.svc.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// Port is a TCP port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// An AttachmentProtocol is how a proxy hands on what comes to a port.
// +kubebuilder:validation:Enum=TCP;HTTP
type AttachmentProtocol string

// Protocols of ports.
const (
	// AttachmentProtocolTCP hands on bytes.
	AttachmentProtocolTCP AttachmentProtocol = "TCP"
	// AttachmentProtocolHTTP hands on requests, with headers that tell who of
	// the tailnet asks.
	AttachmentProtocolHTTP AttachmentProtocol = "HTTP"
)

// An AttachmentTLS says that a proxy ends TLS at a port.
type AttachmentTLS struct {
	// SecretName is a Secret of type kubernetes.io/tls in the same namespace.
	// Absent means the certificate that Tailscale provides for the service's
	// DNS name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// An AttachmentPort is one port of a service and its backend.
type AttachmentPort struct {
	// Port of the service's virtual IP. 0 means all ports, which need proxies
	// with Kernel networking.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Backend that answers. Absent in the direction Egress.
	// +optional
	Backend *AttachmentBackend `json:"backend,omitempty"`

	// Protocol says how the proxy hands on what comes. Absent means TCP.
	// +optional
	Protocol AttachmentProtocol `json:"protocol,omitempty"`

	// TLS says that the proxy ends TLS. Absent hands it on as it is.
	// +optional
	TLS *AttachmentTLS `json:"tls,omitempty"`

	// ProxyProtocol is the version of the PROXY protocol header that goes before
	// each connection to the backend. 0 sends none.
	// +kubebuilder:validation:Enum=0;1;2
	// +optional
	ProxyProtocol int32 `json:"proxyProtocol,omitempty"`
}

// An AttachmentHealthCheck says how an agent probes backends.
type AttachmentHealthCheck struct {
	// Path of an HTTP GET that must answer 2xx or 3xx. Absent means that a TCP
	// connection is enough.
	// +optional
	Path string `json:"path,omitempty"`

	// ResolveOnly sends nothing to a backend: it is healthy while its name is
	// known. Path means nothing then.
	// +optional
	ResolveOnly bool `json:"resolveOnly,omitempty"`

	// Interval between two probes of a backend.
	Interval metav1.Duration `json:"interval"`

	// Timeout of a probe.
	Timeout metav1.Duration `json:"timeout"`

	// HealthyThreshold is how many probes in a row make a backend healthy.
	// +kubebuilder:validation:Minimum=1
	HealthyThreshold int32 `json:"healthyThreshold"`

	// UnhealthyThreshold is how many failed probes in a row make it unhealthy.
	// +kubebuilder:validation:Minimum=1
	UnhealthyThreshold int32 `json:"unhealthyThreshold"`
}

// A ServiceAttachmentSpec is what one TailscaleEndpoints is to serve for one
// Tailscale Service.
type ServiceAttachmentSpec struct {
	// Endpoints is the TailscaleEndpoints whose agents act on this.
	Endpoints string `json:"endpoints"`

	// Services is the TailscaleServices that wants it.
	Services string `json:"services"`

	Direction Direction `json:"direction"`

	// ServiceName in the tailnet.
	ServiceName ServiceName `json:"serviceName"`

	// Addresses of the service, IPv4 first. Absent while it has none: agents get
	// ready for it then, and do not offer it.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports to serve, by port.
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MinItems=1
	Ports []AttachmentPort `json:"ports"`

	// DNSName that Tailscale provides the certificate for: the service's, or, for
	// a cluster's own service beside a shared one, that of the shared one.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	HealthCheck AttachmentHealthCheck `json:"healthCheck"`

	// ClusterID of the cluster that it leads to, for people. Absent unless that is another
	// one.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SERVICE",type="string",JSONPath=".spec.serviceName"
// +kubebuilder:printcolumn:name="ENDPOINTS",type="string",JSONPath=".spec.endpoints"
// +kubebuilder:printcolumn:name="DIRECTION",type="string",JSONPath=".spec.direction"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A ServiceAttachment is what one TailscaleEndpoints is to serve or to reach for
// one service. Agents watch it by the label gateway.tailscale.com/endpoints. It
// has no status.
type ServiceAttachment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceAttachmentSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// ServiceAttachmentList is a list of ServiceAttachment.
type ServiceAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceAttachment `json:"items"`
}
