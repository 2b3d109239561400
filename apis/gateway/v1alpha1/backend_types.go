// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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

// A BackendProtocol is what a backend is handed.
// +kubebuilder:validation:Enum=TCP;HTTP
type BackendProtocol string

// Protocols of backends.
const (
	// BackendProtocolTCP hands on bytes.
	BackendProtocolTCP BackendProtocol = "TCP"
	// BackendProtocolHTTP hands on requests.
	BackendProtocolHTTP BackendProtocol = "HTTP"
)

// A ProxyProtocol is a version of HAProxy's PROXY protocol.
// +kubebuilder:validation:Enum=v1;v2
type ProxyProtocol string

// Versions of the PROXY protocol.
const (
	ProxyProtocolV1 ProxyProtocol = "v1"
	ProxyProtocolV2 ProxyProtocol = "v2"
)

// A Backend answers one or more ports of the service.
// +kubebuilder:validation:XValidation:rule="has(self.host) ? has(self.kind) && self.kind in ['External', 'TailscaleGateway'] : !has(self.kind) || self.kind != 'External'",message="kind External needs host, and kind Service takes none"
// +kubebuilder:validation:XValidation:rule="has(self.port) || has(self.kind) && self.kind == 'TailscaleGateway'",message="port is required unless kind is TailscaleGateway"
// +kubebuilder:validation:XValidation:rule="!has(self.proxyProtocol) || !has(self.protocol) || self.protocol == 'TCP'",message="proxyProtocol needs protocol TCP; with HTTP the client is in the headers X-Forwarded-For and Tailscale-User-Login"
type Backend struct {
	// Kind of the backend: a Service or a TailscaleGateway of the same namespace,
	// or an External host that the proxy pods reach by the cluster's network.
	// +kubebuilder:default=Service
	// +optional
	Kind BackendKind `json:"kind,omitempty"`

	// Name of the backend: that of the Service or TailscaleGateway, or one that
	// stands for the external host in weights and messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Host of a backend of kind External: a DNS name or an address. It is
	// resolved by the proxy pods. Hosts of the tailnet itself are not reached
	// this way. Gateways whose routes name the object connect to it if the value
	// directTargets of the extension's chart lets them, and to a Service of another
	// namespace, by name or by address, only with a ReferenceGrant there, from
	// TailscaleServices to Service. Of a TailscaleGateway it is the Service in front of its Envoys;
	// absent means the one that its status names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?)*[.]?$')",message="must be a DNS name or an address, without a port"
	// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip(self).isGlobalUnicast() && (ip(self).family() == 4 ? !cidr('0.0.0.0/8').containsIP(self) : ['64:ff9b::7f00:0/104', '64:ff9b::a9fe:0/112', '64:ff9b::/104', '64:ff9b::e000:0/100', '64:ff9b::ffff:ffff/128', '2002:7f00::/24', '2002:a9fe::/32', '2002::/24', '2002:e000::/20', '2002:ffff:ffff::/48'].all(c, !cidr(c).containsIP(self))) : !self.matches('^([^.]+[.])*[lL][oO][cC][aA][lL][hH][oO][sS][tT][.]?$')",message="must not be a loopback, unspecified, link-local, multicast or broadcast address, nor another form of one: the proxy pods themselves or their node would answer"
	// +optional
	Host string `json:"host,omitempty"`

	// Port of the backend: of a TailscaleGateway, that of a listener. There it may
	// be absent, which means the port of the service that is answered. When the
	// service's ports are do-not-validate it is only the port that is probed:
	// packets keep theirs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// VIPPort is the port of the Tailscale Service that this backend answers.
	// Absent means every port that no other backend names.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	VIPPort *int32 `json:"vipPort,omitempty"`

	// Weight among the backends of one port, for Gateways whose routes name the object.
	// Absent means 1. Proxies know no other: where no route names the object it shows
	// Accepted=False with the reason Unsupported, but where the one backend is a
	// TailscaleGateway, whose routes say how requests are spread.
	// +optional
	Weight *Weight `json:"weight,omitempty"`

	// Priority among the backends of one port, for Gateways whose routes name the object:
	// the lowest that is healthy gets the traffic. Absent means 0. Proxies know no other,
	// as of weight.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=127
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Protocol says what the backend is handed: TCP is bytes, as they come. HTTP
	// is requests, with headers that tell who of the tailnet asks:
	// X-Forwarded-For, Tailscale-Device-Name, and of a user
	// Tailscale-User-Login, Tailscale-User-Name and
	// Tailscale-User-Profile-Pic, of a tagged device Tailscale-Device-Tags.
	// What a client sends in them is dropped.
	// +kubebuilder:default=TCP
	// +optional
	Protocol BackendProtocol `json:"protocol,omitempty"`

	// ProxyProtocol is the version of the PROXY protocol header that goes before
	// each connection to the backend and tells the client's address in the
	// tailnet. The backend must expect it. Absent sends none.
	// +optional
	ProxyProtocol ProxyProtocol `json:"proxyProtocol,omitempty"`
}

// A TLSMode says who ends TLS.
// +kubebuilder:validation:Enum=Terminate;Passthrough
type TLSMode string

// TLS modes.
const (
	// TLSModeTerminate ends TLS at the proxy.
	TLSModeTerminate TLSMode = "Terminate"
	// TLSModePassthrough hands TLS on to the backend as it is.
	TLSModePassthrough TLSMode = "Passthrough"
)

// A CertificateRef names a Secret of the same namespace.
type CertificateRef struct {
	// Name of a Secret of type kubernetes.io/tls, such as cert-manager makes. A
	// certificate that is renewed is used at once.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// A ServiceTLS says who ends TLS, and with which certificate.
// +kubebuilder:validation:XValidation:rule="!has(self.certificateRef) || !has(self.mode) || self.mode == 'Terminate'",message="certificateRef needs mode Terminate"
type ServiceTLS struct {
	// Mode is Terminate to end TLS at the proxy, or Passthrough to hand it on to
	// the backend as it is.
	// +kubebuilder:default=Terminate
	// +optional
	Mode TLSMode `json:"mode,omitempty"`

	// Ports of the service that speak TLS. Absent means 443 if the service has
	// it, else all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	// +optional
	Ports []int32 `json:"ports,omitempty"`

	// CertificateRef names the Secret that holds the certificate. Absent means
	// the one that Tailscale provides for the service's DNS name, for which HTTPS
	// must be turned on in the tailnet.
	// +optional
	CertificateRef *CertificateRef `json:"certificateRef,omitempty"`
}
