// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A BackendKind is the kind of a backend.
// +kubebuilder:validation:Enum=Service;External;TailscaleGateway
type BackendKind string

// Kinds of backends.
const (
	// BackendKindService is a Service of the same namespace.
	BackendKindService BackendKind = "Service"
	// BackendKindExternal is a host that the proxies reach by the pod network.
	BackendKindExternal BackendKind = "External"
	// BackendKindGateway is a TailscaleGateway of the same namespace.
	BackendKindGateway BackendKind = "TailscaleGateway"
)

// A BackendProtocol is the protocol that a proxy speaks to a backend.
// +kubebuilder:validation:Enum=TCP;HTTP;HTTPS
type BackendProtocol string

// Protocols of backends.
const (
	// BackendProtocolTCP forwards bytes.
	BackendProtocolTCP BackendProtocol = "TCP"
	// BackendProtocolHTTP forwards requests.
	BackendProtocolHTTP BackendProtocol = "HTTP"
	// BackendProtocolHTTPS forwards requests over TLS, and verifies the backend's certificate.
	BackendProtocolHTTPS BackendProtocol = "HTTPS"
)

// Requests reports whether the protocol forwards requests instead of bytes.
func (p BackendProtocol) Requests() bool {
	return p == BackendProtocolHTTP || p == BackendProtocolHTTPS
}

// A BackendTLS configures how the certificate of a backend is verified. The fields are those of a
// BackendTLSPolicy's validation.
// +kubebuilder:validation:XValidation:rule="!has(self.caCertificateRefs) || !has(self.wellKnownCACertificates)",message="set either caCertificateRefs or wellKnownCACertificates"
type BackendTLS struct {
	// Hostname is the name or address for which the backend must have a certificate. The proxy
	// also sends a name to the backend as the server name (SNI). Absent means the host of a
	// backend of kind External, and NAME.NAMESPACE.svc for a Service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case, without a wildcard, or an address"
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// CACertificateRefs reference the ConfigMap of the same namespace that has the certificates of
	// the trusted authorities under the key ca.crt. All ConfigMaps of the object's backends may
	// have 64 KiB of certificates.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == '' && r.kind == 'ConfigMap')",message="must reference a ConfigMap, with group \"\" and kind ConfigMap"
	// +listType=atomic
	// +optional
	CACertificateRefs []gwapiv1.LocalObjectReference `json:"caCertificateRefs,omitempty"`

	// WellKnownCACertificates selects well-known authorities instead of those of a ConfigMap. System
	// are the public ones that the proxy image contains. It is the default.
	// +kubebuilder:validation:Enum=System
	// +optional
	WellKnownCACertificates gwapiv1.WellKnownCACertificatesType `json:"wellKnownCACertificates,omitempty"`
}

// A ProxyProtocol is a version of HAProxy's PROXY protocol.
// +kubebuilder:validation:Enum=v1;v2
type ProxyProtocol string

// Versions of the PROXY protocol.
const (
	ProxyProtocolV1 ProxyProtocol = "v1"
	ProxyProtocolV2 ProxyProtocol = "v2"
)

// No field of a Backend has a default in the schema: the API server would add it to a list that
// belongs to one field manager as a whole, and that tools compare with their manifests.

// A Backend receives the traffic of one or more ports of the service.
// +kubebuilder:validation:XValidation:rule="has(self.host) ? has(self.kind) && self.kind in ['External', 'TailscaleGateway'] : !has(self.kind) || self.kind != 'External'",message="kind External needs host, and kind Service does not allow it"
// +kubebuilder:validation:XValidation:rule="has(self.port) || has(self.kind) && self.kind == 'TailscaleGateway'",message="port is required unless kind is TailscaleGateway"
// +kubebuilder:validation:XValidation:rule="!has(self.proxyProtocol) || !has(self.protocol) || self.protocol == 'TCP'",message="proxyProtocol needs protocol TCP; with HTTP and HTTPS the headers X-Forwarded-For and Tailscale-User-Login identify the client"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || has(self.protocol) && self.protocol == 'HTTPS'",message="tls needs protocol HTTPS"
// +kubebuilder:validation:XValidation:rule="!has(self.protocol) || self.protocol != 'HTTPS' || !has(self.kind) || self.kind != 'TailscaleGateway'",message="protocol HTTPS is not for kind TailscaleGateway; use TCP with a listener of protocol HTTPS, or HTTP with one of protocol HTTP"
type Backend struct {
	// Kind of the backend: a Service or a TailscaleGateway of the same namespace, or an
	// External host that the proxy pods reach through the cluster's network. Absent means
	// Service.
	// +optional
	Kind BackendKind `json:"kind,omitempty"`

	// Name of the Service or TailscaleGateway, or a name for the external host in weights and
	// messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Host of a backend of kind External: a DNS name or an address. The proxy pods look up
	// names with a dot without their search list, except NAME.NAMESPACE.svc. Hosts of the
	// tailnet are not reachable this way. A Gateway whose route references the object connects
	// to the host directly, if the value directTargets of the extension's chart permits it. A
	// Service of another namespace needs a ReferenceGrant in that namespace, from
	// TailscaleServices to Service; Gateways require it for its addresses, too. For a
	// TailscaleGateway, host is the Service in front of its Envoy proxies, which needs the
	// permission to share the Gateway instead; absent means the Service in its status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?)*[.]?$')",message="must be a DNS name or an address, without a port"
	// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip(self).isGlobalUnicast() && (ip(self).family() == 4 ? !cidr('0.0.0.0/8').containsIP(self) : ['64:ff9b::7f00:0/104', '64:ff9b::a9fe:0/112', '64:ff9b::/104', '64:ff9b::e000:0/100', '64:ff9b::ffff:ffff/128', '2002:7f00::/24', '2002:a9fe::/32', '2002::/24', '2002:e000::/20', '2002:ffff:ffff::/48'].all(c, !cidr(c).containsIP(self))) : !self.matches('^([^.]+[.])*[lL][oO][cC][aA][lL][hH][oO][sS][tT][.]?$')",message="must not be a loopback, unspecified, link-local, multicast or broadcast address, nor another form of one: the proxy pods or their node would answer"
	// +optional
	Host string `json:"host,omitempty"`

	// Port of the backend. For a TailscaleGateway, it is the port of a listener; absent means
	// the port of the service. If the service's ports are do-not-validate, the port is only
	// probed, and packets keep their destination port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// VIPPort is the port of the Tailscale Service that this backend serves. Absent means every
	// port that no other backend sets.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	VIPPort *int32 `json:"vipPort,omitempty"`

	// Weight among the backends of one port that have the same priority. Absent means 1. A backend
	// with the weight 0 receives nothing while another backend of the port has a weight.
	// +optional
	Weight *Weight `json:"weight,omitempty"`

	// Priority among the backends of one port: healthy backends with the lowest priority receive
	// the traffic. Absent means 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=127
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Protocol that the proxy speaks to the backend. TCP forwards bytes unchanged. HTTP
	// forwards requests with headers that identify the client: X-Forwarded-For and
	// Tailscale-Device-Name; for a user also Tailscale-User-Login, Tailscale-User-Name and
	// Tailscale-User-Profile-Pic; for a tagged device also Tailscale-Device-Tags. The proxy
	// removes these headers from the client's request. HTTPS does the same over TLS, and verifies
	// the backend's certificate as tls says. A Gateway whose HTTPRoute or GRPCRoute references the
	// object needs a BackendTLSPolicy for a backend with HTTPS: without one it sends the backend
	// nothing. Absent means TCP.
	// +optional
	Protocol BackendProtocol `json:"protocol,omitempty"`

	// TLS configures how the proxy verifies the backend's certificate with protocol HTTPS, which it
	// always does. Absent means the default of each field.
	// +optional
	TLS *BackendTLS `json:"tls,omitempty"`

	// ProxyProtocol is the version of the PROXY protocol header that the proxy sends at the
	// start of each connection to the backend. It contains the client's address in the tailnet.
	// The backend must accept it. Absent sends none.
	// +optional
	ProxyProtocol ProxyProtocol `json:"proxyProtocol,omitempty"`
}

// A TLSMode decides where TLS is terminated.
// +kubebuilder:validation:Enum=Terminate;Passthrough
type TLSMode string

// TLS modes.
const (
	// TLSModeTerminate terminates TLS at the proxy.
	TLSModeTerminate TLSMode = "Terminate"
	// TLSModePassthrough forwards TLS unchanged to the backend.
	TLSModePassthrough TLSMode = "Passthrough"
)

// A CertificateRef references a Secret of the same namespace.
type CertificateRef struct {
	// Name of a Secret of type kubernetes.io/tls, such as cert-manager creates. A renewed
	// certificate takes effect immediately.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// A ServiceTLS configures TLS termination and its certificate.
// +kubebuilder:validation:XValidation:rule="!has(self.certificateRef) || !has(self.mode) || self.mode == 'Terminate'",message="certificateRef needs mode Terminate"
type ServiceTLS struct {
	// Mode is Terminate to terminate TLS at the proxy, or Passthrough to forward TLS unchanged
	// to the backend.
	// +kubebuilder:default=Terminate
	// +optional
	Mode TLSMode `json:"mode,omitempty"`

	// Ports of the service that use TLS. Absent means 443 if the service has it, and all ports
	// otherwise.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	// +optional
	Ports []int32 `json:"ports,omitempty"`

	// CertificateRef references the Secret that holds the certificate. Absent means the
	// certificate that Tailscale provides for the service's DNS name, which requires HTTPS to
	// be enabled in the tailnet.
	// +optional
	CertificateRef *CertificateRef `json:"certificateRef,omitempty"`
}
