// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A TargetKind is the kind of ours that a route names.
type TargetKind string

// Kinds of targets, as in the names of clusters.
const (
	TargetServices  TargetKind = "services"
	TargetEndpoints TargetKind = "endpoints"
	// TargetFailover is a Kubernetes Service in other clusters, which a TailscaleServices shares.
	// Routes name the Service, and Envoy Gateway has its endpoints in this cluster.
	TargetFailover TargetKind = "failover"
)

var targetKinds = map[TargetKind]bool{TargetServices: true, TargetEndpoints: true, TargetFailover: true}

// A Protocol is the protocol between Envoy and a target. It is part of the target's
// identity, because one Envoy cluster speaks one protocol.
type Protocol string

// Protocols of targets.
const (
	// ProtocolHTTP is HTTP/1.1.
	ProtocolHTTP Protocol = "http"
	// ProtocolGRPC is HTTP/2.
	ProtocolGRPC Protocol = "grpc"
	// ProtocolTCP is a stream of bytes, such as TLS.
	ProtocolTCP Protocol = "tcp"
	// ProtocolUDP is for datagrams.
	ProtocolUDP Protocol = "udp"
)

// targetPrefix is the first part of the names of all shared clusters, and OursPrefix the
// prefix of their names and of the names of endpoint lists.
const (
	targetPrefix = "tailscale"
	OursPrefix   = targetPrefix + "/"
)

// A TargetKey identifies one port of one of our objects, or of a Kubernetes Service in other clusters,
// and the protocol.
type TargetKey struct {
	Kind      TargetKind
	Namespace string
	Name      string
	Port      int32
	Protocol  Protocol
}

// ClusterName returns the name of the Envoy cluster that all routes to the target share:
// tailscale/KIND/NAMESPACE/NAME/PORT/PROTOCOL. It has no hash, so that settings change in
// place.
func (k TargetKey) ClusterName() string {
	return strings.Join([]string{targetPrefix, string(k.Kind), k.Namespace, k.Name, strconv.Itoa(int(k.Port)), string(k.Protocol)}, "/")
}

// ParseClusterName is the inverse of ClusterName.
func ParseClusterName(name string) (TargetKey, error) {
	p := strings.Split(name, "/")
	if len(p) != 6 || p[0] != targetPrefix || !targetKinds[TargetKind(p[1])] {
		return TargetKey{}, fmt.Errorf("%q is no name of a shared cluster", name)
	}
	port, err := strconv.ParseUint(p[4], 10, 16)
	if err != nil {
		return TargetKey{}, fmt.Errorf("%q has no port", name)
	}
	return TargetKey{Kind: TargetKind(p[1]), Namespace: p[2], Name: p[3], Port: int32(port), Protocol: Protocol(p[5])}, nil
}

// A Health is the known health of an endpoint. Envoy's own checks add to it.
type Health int

// Healths of endpoints.
const (
	HealthUnknown Health = iota
	Healthy
	Unhealthy
	// Draining endpoints finish their connections, and get no new ones.
	Draining
	// Degraded endpoints get traffic only if no others are left.
	Degraded
)

// An Endpoint is one address of a target.
type Endpoint struct {
	// Address is an IP address.
	Address string
	Port    int32

	// Hostname that requests to the endpoint carry. Empty keeps that of the request.
	Hostname string

	Health Health
	Weight uint32
}

// Priorities of localities: Envoy uses the next priority only as far as the one before it
// has too few healthy endpoints. Local backends with different priorities take as many as
// they need, and the others follow.
const (
	PriorityLocal     uint32 = 0
	PriorityRemote    uint32 = 1
	PriorityUnhealthy uint32 = 2
)

// A Locality is a group of endpoints that are near each other. It exists even without
// endpoints, so that priorities have no gaps and no endpoint changes its priority when
// endpoints before it come and go.
type Locality struct {
	// Name of the backend, of the endpoint of a TailscaleEndpoints, or of the
	// ServiceAttachment that leads to another cluster.
	Name string

	// Zone of the endpoints. Empty if it is not known.
	Zone string

	Priority uint32

	// Remote reports that the endpoints lead to proxies of another cluster.
	Remote bool

	// Proxied reports that the endpoints are egress proxies, where each port leads to
	// another target. Remote endpoints always are.
	Proxied bool

	// Weight among the localities of one priority. It is at least 1: a backend of weight 0
	// has no locality.
	Weight uint32

	Endpoints []Endpoint
}

// A LoadBalancer is Envoy's algorithm to select an endpoint.
type LoadBalancer string

// Load balancers, by Envoy's names.
const (
	LeastRequest LoadBalancer = "least_request"
	RoundRobin   LoadBalancer = "round_robin"
)

// A HealthCheck is how Envoy checks endpoints.
type HealthCheck struct {
	// Path of an HTTP GET. Empty means that a TCP connection is enough.
	Path               string
	Host               string
	Interval, Timeout  time.Duration
	Healthy, Unhealthy uint32
}

// An OutlierDetection ejects endpoints that fail requests.
type OutlierDetection struct {
	Consecutive5xx            uint32
	ConsecutiveGatewayFailure uint32
	Interval                  time.Duration
	BaseEjectionTime          time.Duration
	MaxEjectionPercent        uint32
	SplitLocalOriginErrors    bool
}

// A Shape holds the settings of a target's Envoy cluster, without its endpoints. Two targets
// of equal shape have equal clusters.
type Shape struct {
	// LoadBalancer of the object. Empty keeps that of Envoy Gateway.
	LoadBalancer LoadBalancer

	// HealthThreshold is the percentage of healthy endpoints of one priority below
	// which traffic begins to go to the next. Envoy's overprovisioning factor is
	// 10,000 over it.
	HealthThreshold uint32

	// PreferZone is the number of endpoints, of the target and of a zone, from which requests stay in
	// Envoy's zone. Zero means that they need not.
	PreferZone uint32

	HealthCheck      *HealthCheck
	OutlierDetection *OutlierDetection

	// TLS to the endpoints, or nil if they do not speak TLS.
	TLS *UpstreamTLS

	// RemoteTLS is the TLS to the endpoints of Remote localities, if it differs: proxies of
	// other clusters may terminate TLS, while the backends here and behind them do not speak
	// it.
	RemoteTLS *UpstreamTLS

	// HTTP2 reports that endpoints speak HTTP/2 with prior knowledge.
	HTTP2 bool
}

// Transport returns an identifier of the TLS to the endpoints, which differs for different settings,
// and is empty without TLS.
func (s Shape) Transport() string {
	if s.TLS == nil && s.RemoteTLS == nil {
		return ""
	}
	// Texts and booleans are always encoded.
	b, _ := json.Marshal([]*UpstreamTLS{s.TLS, s.RemoteTLS})
	h := fnv.New64a()
	// Hashes never fail.
	_, _ = h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}

// An UpstreamTLS is the TLS between Envoy and endpoints.
type UpstreamTLS struct {
	// ServerName for SNI and for the verification of the certificate. Empty means the host
	// that the request carries.
	ServerName string

	// AltNames are subject alternative names, one of which the certificate must have instead
	// of ServerName. None means ServerName.
	AltNames []AltName

	// CA is the bundle, in PEM, that certificates must chain to. Empty means the system's.
	CA string
}

// An AltName is a subject alternative name of a certificate.
type AltName struct {
	// URI reports that Value is a URI, such as a SPIFFE ID, instead of a DNS name.
	URI   bool
	Value string
}

// A Target is what a backendRef to one of our objects resolves to.
type Target struct {
	Key   TargetKey
	Shape Shape

	// Transport is that of the shape.
	Transport string

	// Pending reports that a host of the target has not been looked up yet.
	Pending bool

	// Localities ordered by priority, then by name.
	Localities []Locality

	// Candidates are the endpoints to be probed, and Delays the times to wait before traffic
	// moves. They are empty for a Shape without HealthCheck.
	Candidates []Candidate
	Delays     Delays

	// Drains reports that other clusters come before this one.
	Drains bool

	// Problem says why no endpoint can answer. It is shown to people, and empty if one can.
	Problem string

	// Refused says which hosts of the target nothing may connect to and why, while others
	// answer. It is shown to people. If no host answers, the Problem says it.
	Refused []string

	// TLSPolicies are the BackendTLSPolicies of the target that are not applied to it, sorted by
	// name.
	TLSPolicies []UnappliedTLSPolicy

	// Missing reports that the object or its port does not exist: the reference is invalid,
	// which Gateway API answers by 500 and not by 503. A TargetFailover is Missing if no other
	// cluster shares the Service.
	Missing bool

	// Publisher is the TailscaleServices that leads a TargetFailover to other clusters. Empty if it is
	// Missing.
	Publisher types.NamespacedName

	// Vacant is the port of a TargetFailover's Service that has no ready endpoint in this cluster.
	// Nil if it has one.
	Vacant *VacantPort
}

// A VacantPort is a port of a Kubernetes Service without ready endpoints.
type VacantPort struct {
	// Name of the port. Empty for the only port of a Service.
	Name string

	// IPv6 reports that IPv6 is the first address family of the Service.
	IPv6 bool
}

// An UnappliedTLSPolicy is a BackendTLSPolicy that is not applied to a target.
type UnappliedTLSPolicy struct {
	Name       types.NamespacedName
	Generation int64

	// Accepted is the reason of the condition Accepted. ResolvedRefs is that of the condition
	// ResolvedRefs, and empty if the policy's references are not the cause.
	Accepted, ResolvedRefs string

	// Message says why, and what to do.
	Message string
}
