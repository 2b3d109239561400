// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthCheck configures how proxies probe backends.
type HealthCheck struct {
	// Enabled selects the probe. If true, the proxy requests path with HTTP GET. If false, it
	// sends no probe: a backend is healthy while its name resolves, so a Service without ready
	// pods stays advertised. Absent means that a successful TCP connection is enough.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Path of an HTTP GET that must return a 2xx or 3xx status. A backend with protocol HTTPS gets
	// it over TLS, with the same verification.
	// +kubebuilder:default="/health"
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two probes of a healthy backend, such as 10s. In front of Envoy less than
	// 1s counts as 1s.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`

	// Timeout of a probe, such as 3s. In front of Envoy more than 10s counts as 10s.
	// +kubebuilder:default="3s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// HealthyThreshold is the number of consecutive successful probes that make a backend
	// healthy.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold int32 `json:"healthyThreshold,omitempty"`

	// UnhealthyThreshold is the number of consecutive failed probes that make a backend
	// unhealthy.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold int32 `json:"unhealthyThreshold,omitempty"`
}

// A Strategy selects the backend of a port for a connection.
// +kubebuilder:validation:Enum=round-robin;least-connections;weighted;failover
type Strategy string

// Strategies.
const (
	StrategyRoundRobin       Strategy = "round-robin"
	StrategyLeastConnections Strategy = "least-connections"
	StrategyWeighted         Strategy = "weighted"
	StrategyFailover         Strategy = "failover"
)

// A BackendName is the name of a backend.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
type BackendName string

// A Weight is the weight of a backend among those of the same port.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=1000000
type Weight int32

// A Failover configures the backends that take over when the primary is unhealthy.
// +kubebuilder:validation:XValidation:rule="!(self.primary in self.secondary)",message="secondary must not list primary"
type Failover struct {
	// Primary is the backend that gets all traffic while it is healthy. When it is healthy again,
	// open connections to a secondary backend continue.
	Primary BackendName `json:"primary"`

	// Secondary backends in order: the first healthy one takes over.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Secondary []BackendName `json:"secondary"`

	// FailbackDelay is how long primary must be healthy again before it receives traffic, such
	// as 60s.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`
}

// An OutlierDetection configures when a Gateway ejects a backend that fails requests.
type OutlierDetection struct {
	// Consecutive5xx is the number of consecutive 5xx responses that eject a backend.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Consecutive5xx *int32 `json:"consecutive5xx,omitempty"`

	// ConsecutiveGatewayFailure is the number of consecutive 502, 503 or 504 responses that
	// eject a backend.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	ConsecutiveGatewayFailure *int32 `json:"consecutiveGatewayFailure,omitempty"`

	// Interval between two evaluations, such as 30s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// BaseEjectionTime is the duration of an ejection, multiplied by the number of ejections of
	// the backend.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	BaseEjectionTime *metav1.Duration `json:"baseEjectionTime,omitempty"`

	// MaxEjectionPercent is the maximum percentage of backends that are ejected at a time.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxEjectionPercent *int32 `json:"maxEjectionPercent,omitempty"`

	// SplitExternalLocalOriginErrors counts connection failures separately from error responses
	// of the backend. A backend that accepts connections and resets them is then never ejected,
	// because Envoy counts each established connection as a success.
	// +kubebuilder:default=false
	// +optional
	SplitExternalLocalOriginErrors *bool `json:"splitExternalLocalOriginErrors,omitempty"`
}

// An Affinity selects the clusters that receive requests while all are healthy.
// +kubebuilder:validation:Enum=Local;Global
type Affinity string

// Affinities.
const (
	// AffinityLocal uses other clusters only when this one has no healthy backend.
	AffinityLocal Affinity = "Local"
	// AffinityGlobal balances over all clusters.
	AffinityGlobal Affinity = "Global"
)

// A FailoverPolicy configures when a Gateway shifts traffic from local backends to those of
// other clusters.
type FailoverPolicy struct {
	// PreferLocal sends traffic to other clusters only when local backends fail. If false,
	// local and remote backends are equal.
	// +kubebuilder:default=true
	// +optional
	PreferLocal *bool `json:"preferLocal,omitempty"`

	// HealthThreshold is the percentage of healthy local backends below which
	// traffic begins to shift to other clusters.
	// +kubebuilder:default=70
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	HealthThreshold *int32 `json:"healthThreshold,omitempty"`

	// UnhealthyThreshold is the number of consecutive failed probes that make a backend
	// unhealthy. Absent means the value of healthCheck.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`

	// HealthyThreshold is the number of consecutive successful probes that make a backend
	// healthy. Absent means the value of healthCheck.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`

	// FailoverTimeout is how long local backends must fail before traffic shifts. With 0s,
	// Envoy decides alone. With more, traffic shifts only while the extension runs.
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailoverTimeout *metav1.Duration `json:"failoverTimeout,omitempty"`

	// FailbackDelay is how long local backends must be healthy again before traffic shifts
	// back. Absent means no delay.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`
}

// LoadBalancing distributes traffic over backends. The fields outlierDetection, affinity and
// failoverPolicy apply to Gateways whose routes reference the object; proxies ignore them.
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || self.strategy == 'weighted'",message="weights need strategy weighted"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'weighted' || has(self.weights) && size(self.weights) > 0",message="strategy weighted needs weights"
// +kubebuilder:validation:XValidation:rule="has(self.failover) == (self.strategy == 'failover')",message="strategy failover needs failover, and no other strategy allows it"
type LoadBalancing struct {
	// Strategy selects one of the backends that answer a port: proxies do for each connection, or
	// for each request with protocol HTTP or HTTPS, and Gateways whose routes reference the object
	// for each request. Unhealthy backends receive nothing while another one is healthy. round-robin takes
	// turns, by the weights of the backends. least-connections selects the backend with the fewest
	// open connections or requests of the proxy or Gateway, for its weight. weighted takes turns by
	// weights. failover selects the first healthy backend. A backend counts as one, and Kubernetes
	// balances the pods of a Service, except that Gateways balance pods. With one backend for each
	// port, proxies have nothing to select. Proxies with Kernel networking, and services with
	// do-not-validate, have no strategies: unless a route references the object, the condition
	// Accepted=False has the reason Unsupported. If each backend is a TailscaleGateway, its Envoy
	// proxies distribute requests according to its routes and their policies.
	// +kubebuilder:default=round-robin
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// Weights of backends, by name, when strategy is weighted. The default is 1. A backend with
	// the weight 0 receives nothing.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Weights map[string]Weight `json:"weights,omitempty"`

	// Failover configures the backends that take over, when strategy is failover.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// HealthCheck configures how proxies probe backends. A service without healthy backends is
	// not advertised.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`

	// OutlierDetection configures when a Gateway whose route references this object ejects a
	// backend that fails requests.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`

	// Affinity selects the clusters for a Gateway whose route references this object: Local
	// uses other clusters only when this one has no healthy backend, Global uses all clusters
	// that share the service.
	// +kubebuilder:default=Local
	// +optional
	Affinity Affinity `json:"affinity,omitempty"`

	// FailoverPolicy configures when a Gateway whose route references this object shifts
	// traffic from local backends to those of other clusters that share the service.
	// +optional
	FailoverPolicy *FailoverPolicy `json:"failoverPolicy,omitempty"`
}
