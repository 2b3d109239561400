// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthCheck says how proxies probe backends.
type HealthCheck struct {
	// Enabled true asks for path by HTTP. False sends nothing to backends: one
	// is healthy while its name is known, so that a Service without ready pods
	// stays advertised. Absent, a TCP connection is enough.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Path of an HTTP GET that must answer 2xx or 3xx.
	// +kubebuilder:default="/health"
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two probes of a healthy backend, such as 10s.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`

	// Timeout of a probe, such as 3s.
	// +kubebuilder:default="3s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// HealthyThreshold is how many answers in a row make a backend healthy.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold int32 `json:"healthyThreshold,omitempty"`

	// UnhealthyThreshold is how many failures in a row make it unhealthy.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold int32 `json:"unhealthyThreshold,omitempty"`
}

// A Strategy says which backend of a port gets a connection.
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

// A Weight of a backend among those of the same port.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=1000000
type Weight int32

// A Failover says which backend takes over when another is sick.
// +kubebuilder:validation:XValidation:rule="!(self.primary in self.secondary)",message="secondary must not list primary"
type Failover struct {
	// Primary is the backend that gets all traffic while it is healthy.
	Primary BackendName `json:"primary"`

	// Secondary backends take over, the first that is healthy.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Secondary []BackendName `json:"secondary"`

	// FailbackDelay is how long primary must be healthy again before it gets
	// traffic, such as 60s.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`
}

// An OutlierDetection says when a Gateway takes a backend that fails requests out
// of its rotation.
type OutlierDetection struct {
	// Consecutive5xx is how many 5xx answers in a row take a backend out.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Consecutive5xx *int32 `json:"consecutive5xx,omitempty"`

	// ConsecutiveGatewayFailure is how many answers 502, 503 or 504 in a row do.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	ConsecutiveGatewayFailure *int32 `json:"consecutiveGatewayFailure,omitempty"`

	// Interval between two looks at who fails, such as 30s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// BaseEjectionTime is how long a backend stays out, times how often it was.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	BaseEjectionTime *metav1.Duration `json:"baseEjectionTime,omitempty"`

	// MaxEjectionPercent of the backends may be out at a time.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxEjectionPercent *int32 `json:"maxEjectionPercent,omitempty"`

	// SplitExternalLocalOriginErrors counts failures to connect apart from
	// failures that the backend answers.
	// +kubebuilder:default=true
	// +optional
	SplitExternalLocalOriginErrors *bool `json:"splitExternalLocalOriginErrors,omitempty"`
}

// An Affinity says which clusters answer while all are healthy.
// +kubebuilder:validation:Enum=Local;Global
type Affinity string

// Affinities.
const (
	// AffinityLocal uses other clusters only when this one has no healthy backend.
	AffinityLocal Affinity = "Local"
	// AffinityGlobal balances over all clusters.
	AffinityGlobal Affinity = "Global"
)

// A FailoverPolicy says when a Gateway leaves the backends of its own cluster for
// those of others.
type FailoverPolicy struct {
	// PreferLocal sends traffic to other clusters only when local backends fail.
	// When false, local and remote backends are equal.
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

	// UnhealthyThreshold is how many failed probes in a row make a backend
	// unhealthy. Absent means that of healthCheck.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`

	// HealthyThreshold is how many answered probes in a row make a backend
	// healthy. Absent means that of healthCheck.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`

	// FailoverTimeout is how long local backends must fail before traffic
	// shifts. At 0s Envoy decides alone; above, the extension must run for
	// traffic to shift.
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailoverTimeout *metav1.Duration `json:"failoverTimeout,omitempty"`

	// FailbackDelay is how long local backends must be healthy again before
	// traffic shifts back. Absent means at once.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`
}

// LoadBalancing says how traffic is spread over backends. OutlierDetection,
// affinity and failoverPolicy are for Gateways whose routes name the object; proxies
// make nothing of them.
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || self.strategy == 'weighted'",message="weights need strategy weighted"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'weighted' || has(self.weights) && size(self.weights) > 0",message="strategy weighted needs weights"
// +kubebuilder:validation:XValidation:rule="has(self.failover) == (self.strategy == 'failover')",message="strategy failover needs failover, and no other strategy takes it"
type LoadBalancing struct {
	// Strategy says which backend of a port gets a connection. A proxy hands
	// each port to one Service, whose pods Kubernetes balances: that is
	// round-robin. Gateways whose routes name the object know all of them. Where no
	// route does, any other shows Accepted=False with the reason Unsupported, but where
	// each backend is a TailscaleGateway: its Envoys spread requests as its routes and
	// their policies say, whatever the strategy here.
	// +kubebuilder:default=round-robin
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// Weights of backends, by name, when strategy is weighted. One that is not
	// named has the weight 1.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Weights map[string]Weight `json:"weights,omitempty"`

	// Failover says which backend takes over, when strategy is failover.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// HealthCheck says how proxies probe backends. A service whose backends are
	// all unhealthy is not advertised.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`

	// OutlierDetection says when a Gateway whose route names this object takes a
	// backend that fails requests out of its rotation.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`

	// Affinity says which clusters a Gateway whose route names this object uses:
	// with Local others only when this one has no healthy backend, with Global
	// all that share the service.
	// +kubebuilder:default=Local
	// +optional
	Affinity Affinity `json:"affinity,omitempty"`

	// FailoverPolicy says when a Gateway whose route names this object leaves the
	// backends of its own cluster for those of others that share the service.
	// +optional
	FailoverPolicy *FailoverPolicy `json:"failoverPolicy,omitempty"`
}
