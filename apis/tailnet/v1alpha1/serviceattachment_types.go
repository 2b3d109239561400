// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An AttachmentBackend is the backend of one port of a service.
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

// An AttachmentShare is one of several backends of a port.
type AttachmentShare struct {
	AttachmentBackend `json:",inline"`

	// Weight among the backends of the same priority.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight"`

	// Priority of the backend: healthy backends with the lowest priority receive the traffic.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=127
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// FailbackDelay is how long the backend must be healthy again before it receives traffic, while
	// another one is healthy. Absent means no delay.
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`

	// TLS configures how the agent verifies the backend's certificate. Only for the protocol HTTPS,
	// which requires it.
	// +optional
	TLS *AttachmentBackendTLS `json:"tls,omitempty"`
}

// An AttachmentBackendTLS configures how the certificate of a backend is verified.
type AttachmentBackendTLS struct {
	// ServerName is the name or address that the certificate must be for. A name is also sent to
	// the backend.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName"`

	// Authorities is the name of the entry of the object's authorities that are trusted. Absent means
	// those of the proxy image.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Authorities string `json:"authorities,omitempty"`
}

// AttachmentAuthorities are certificates that connections to backends trust.
type AttachmentAuthorities struct {
	// Name of the ConfigMap that the certificates are from.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Certificates in PEM.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Certificates string `json:"certificates"`
}

// An AttachmentStrategy selects the backend of a connection or request.
// +kubebuilder:validation:Enum=LeastConnections
type AttachmentStrategy string

// AttachmentStrategyLeastConnections selects the backend with the fewest open connections of the
// agent for its weight, or, for HTTP and HTTPS, with the fewest requests.
const AttachmentStrategyLeastConnections AttachmentStrategy = "LeastConnections"

// MaxAttachmentShares is the maximum number of backends of one port.
const MaxAttachmentShares = 16

// An AttachmentProtocol is the protocol that a proxy forwards from a port to the backend.
// +kubebuilder:validation:Enum=TCP;HTTP;HTTPS
type AttachmentProtocol string

// Protocols of ports.
const (
	// AttachmentProtocolTCP forwards bytes.
	AttachmentProtocolTCP AttachmentProtocol = "TCP"
	// AttachmentProtocolHTTP forwards requests with headers that identify the client in the
	// tailnet.
	AttachmentProtocolHTTP AttachmentProtocol = "HTTP"
	// AttachmentProtocolHTTPS forwards such requests over TLS, and verifies the certificates of
	// backends. Agents of earlier versions would forward the bytes of a protocol that they do not
	// know, so a port with it has only the field backends: without the field backend, they do not
	// serve the port.
	AttachmentProtocolHTTPS AttachmentProtocol = "HTTPS"
)

// Requests reports whether the protocol forwards requests instead of bytes.
func (p AttachmentProtocol) Requests() bool {
	return p == AttachmentProtocolHTTP || p == AttachmentProtocolHTTPS
}

// An AttachmentTLS configures a proxy to terminate TLS at a port.
type AttachmentTLS struct {
	// SecretName is the name of a Secret of type kubernetes.io/tls in the same namespace.
	// Absent means the certificate that Tailscale provides for the service's DNS name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// An AttachmentPort is one port of a service and its backends.
type AttachmentPort struct {
	// Port of the service's virtual IP address. 0 means all ports, which need proxies with
	// Kernel networking.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Backend of the port. Absent in the direction Egress, and with the protocol HTTPS, which has
	// backends alone. Of several backends it is the one that receives most: agents of earlier
	// versions do not know the field backends, and forward to this backend alone.
	// +optional
	Backend *AttachmentBackend `json:"backend,omitempty"`

	// Backends among which the agent balances connections, or requests with the protocols HTTP and
	// HTTPS. Absent means that backend is the only one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Backends []AttachmentShare `json:"backends,omitempty"`

	// Strategy that selects one of backends. Absent means that each receives a share by its weight.
	// +optional
	Strategy AttachmentStrategy `json:"strategy,omitempty"`

	// Protocol that the proxy forwards. Absent means TCP.
	// +optional
	Protocol AttachmentProtocol `json:"protocol,omitempty"`

	// TLS makes the proxy terminate TLS. Absent forwards TLS unchanged.
	// +optional
	TLS *AttachmentTLS `json:"tls,omitempty"`

	// ProxyProtocol is the version of the PROXY protocol header that the proxy sends at the
	// start of each connection to the backend. 0 sends none.
	// +kubebuilder:validation:Enum=0;1;2
	// +optional
	ProxyProtocol int32 `json:"proxyProtocol,omitempty"`
}

// An AttachmentHealthCheck configures how an agent probes backends.
type AttachmentHealthCheck struct {
	// Path of an HTTP GET, or of an HTTPS GET with the protocol HTTPS of the port, that must return
	// a 2xx or 3xx status. Absent means that a successful TCP connection is enough.
	// +optional
	Path string `json:"path,omitempty"`

	// ResolveOnly sends no probe: a backend is healthy while its name resolves. Path has no
	// effect then.
	// +optional
	ResolveOnly bool `json:"resolveOnly,omitempty"`

	// Interval between two probes of a backend.
	Interval metav1.Duration `json:"interval"`

	// Timeout of a probe.
	Timeout metav1.Duration `json:"timeout"`

	// HealthyThreshold is the number of consecutive successful probes that make a backend
	// healthy.
	// +kubebuilder:validation:Minimum=1
	HealthyThreshold int32 `json:"healthyThreshold"`

	// UnhealthyThreshold is the number of consecutive failed probes that make a backend
	// unhealthy.
	// +kubebuilder:validation:Minimum=1
	UnhealthyThreshold int32 `json:"unhealthyThreshold"`
}

// A ServiceAttachmentSpec configures one TailscaleEndpoints for one Tailscale Service.
type ServiceAttachmentSpec struct {
	// Endpoints is the name of the TailscaleEndpoints whose agents use this object.
	Endpoints string `json:"endpoints"`

	// Services is the name of the TailscaleServices that created this object.
	Services string `json:"services"`

	Direction Direction `json:"direction"`

	// ServiceName in the tailnet.
	ServiceName ServiceName `json:"serviceName"`

	// Addresses of the service, IPv4 first. Absent while it has none: agents then prepare the
	// service, and do not advertise it.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports to serve, by port.
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MinItems=1
	Ports []AttachmentPort `json:"ports"`

	// DNSName of the certificate that Tailscale provides: that of the service, or, for a
	// cluster's service beside a shared one, that of the shared one.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	HealthCheck AttachmentHealthCheck `json:"healthCheck"`

	// Authorities that backends with the protocol HTTPS name, each once.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Authorities []AttachmentAuthorities `json:"authorities,omitempty"`

	// Drain moves requests to other clusters. With direction Ingress, proxies withdraw the service as
	// soon as the provider says that another cluster hosts it. With direction Egress, Gateways send
	// requests to the destination cluster before the backends of this one.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// Draining reports that the destination cluster hands the service to others: Gateways send it
	// requests only while no cluster that serves is healthy. Only with direction Egress.
	// +optional
	Draining bool `json:"draining,omitempty"`

	// ClusterID of the destination cluster, for information. Absent unless it is another
	// cluster.
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

// A ServiceAttachment configures one TailscaleEndpoints to serve or to reach one service.
// Agents watch it by the label gateway.tailscale.com/endpoints. It has no status.
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

// ServiceAttachmentKind is the kind of a ServiceAttachment.
const ServiceAttachmentKind = "ServiceAttachment"

func init() {
	register(&ServiceAttachment{}, &ServiceAttachmentList{})
}
