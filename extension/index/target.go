// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A TargetKind is the kind of ours that a route names.
type TargetKind string

// Kinds of targets, as they stand in a cluster's name.
const (
	TargetServices  TargetKind = "services"
	TargetEndpoints TargetKind = "endpoints"
)

// A Protocol is how Envoy speaks to a target. It is part of the target's identity:
// one Envoy cluster speaks one protocol.
type Protocol string

// Protocols of targets.
const (
	// ProtocolHTTP is HTTP/1.1.
	ProtocolHTTP Protocol = "http"
	// ProtocolGRPC is HTTP/2.
	ProtocolGRPC Protocol = "grpc"
	// ProtocolTCP is bytes, TLS among them.
	ProtocolTCP Protocol = "tcp"
	// ProtocolUDP is datagrams.
	ProtocolUDP Protocol = "udp"
)

// targetPrefix is what all names of shared clusters begin with, and OursPrefix those of
// endpoint lists too.
const (
	targetPrefix = "tailscale"
	OursPrefix   = targetPrefix + "/"
)

// A TargetKey names one port of one of our objects, and how it is spoken to.
type TargetKey struct {
	Kind      TargetKind
	Namespace string
	Name      string
	Port      int32
	Protocol  Protocol
}

// ClusterName of the Envoy cluster that all routes to the target share:
// tailscale/KIND/NAMESPACE/NAME/PORT/PROTOCOL. It has no hash, so that settings
// change in place.
func (k TargetKey) ClusterName() string {
	return strings.Join([]string{targetPrefix, string(k.Kind), k.Namespace, k.Name, strconv.Itoa(int(k.Port)), string(k.Protocol)}, "/")
}

// ParseClusterName is the reverse of ClusterName.
func ParseClusterName(name string) (TargetKey, error) {
	p := strings.Split(name, "/")
	if len(p) != 6 || p[0] != targetPrefix || TargetKind(p[1]) != TargetServices && TargetKind(p[1]) != TargetEndpoints {
		return TargetKey{}, fmt.Errorf("%q is no name of a shared cluster", name)
	}
	port, err := strconv.ParseUint(p[4], 10, 16)
	if err != nil {
		return TargetKey{}, fmt.Errorf("%q has no port", name)
	}
	return TargetKey{Kind: TargetKind(p[1]), Namespace: p[2], Name: p[3], Port: int32(port), Protocol: Protocol(p[5])}, nil
}

// A Health is what is known of an endpoint beside what Envoy finds out.
type Health int

// Healths of endpoints.
const (
	HealthUnknown Health = iota
	Healthy
	Unhealthy
	// Draining endpoints finish what they have, and get nothing new.
	Draining
	// Degraded endpoints are for when no other is left.
	Degraded
)

// An Endpoint is one address that answers.
type Endpoint struct {
	// Address is an IP address.
	Address string
	Port    int32

	// Hostname that requests to it carry. Empty leaves what the client sent.
	Hostname string

	Health Health
	Weight uint32
}

// Priorities of localities: Envoy uses the next only as far as the one before it
// has too few healthy endpoints. Where local backends have priorities of their own
// they take as many as they need, and the others come after.
const (
	PriorityLocal     uint32 = 0
	PriorityRemote    uint32 = 1
	PriorityUnhealthy uint32 = 2
)

// A Locality is endpoints that are near each other. One is there without endpoints
// too: so priorities have no gaps, and no endpoint moves from one to another when
// those before it come and go.
type Locality struct {
	// Name says where the endpoints are: a backend, an endpoint of a
	// TailscaleEndpoints, or the ServiceAttachment that leads to another cluster.
	Name string

	// Zone of the endpoints. Empty when it is not known.
	Zone string

	Priority uint32

	// Remote reports that the endpoints lead to proxies of another cluster.
	Remote bool

	// Proxied reports that the endpoints are egress proxies, each port of which leads
	// elsewhere. Remote ones always are.
	Proxied bool

	// Weight among the localities of one priority. At least 1: a backend of weight
	// 0 has no locality.
	Weight uint32

	Endpoints []Endpoint
}

// A LoadBalancer is how Envoy picks an endpoint.
type LoadBalancer string

// Load balancers, by Envoy's names.
const (
	LeastRequest LoadBalancer = "least_request"
	RoundRobin   LoadBalancer = "round_robin"
)

// A HealthCheck is how Envoy asks endpoints whether they are well.
type HealthCheck struct {
	// Path of an HTTP GET. Empty means that a TCP connection is enough.
	Path               string
	Host               string
	Interval, Timeout  time.Duration
	Healthy, Unhealthy uint32
}

// An OutlierDetection takes endpoints out that fail requests.
type OutlierDetection struct {
	Consecutive5xx            uint32
	ConsecutiveGatewayFailure uint32
	Interval                  time.Duration
	BaseEjectionTime          time.Duration
	MaxEjectionPercent        uint32
	SplitLocalOriginErrors    bool
}

// A Shape is what an Envoy cluster is to be like for a target, except for its
// endpoints. Two targets of equal shape have equal clusters.
type Shape struct {
	// LoadBalancer that the object asks for. Empty leaves the one that Envoy
	// Gateway set.
	LoadBalancer LoadBalancer

	// HealthThreshold is the percentage of healthy endpoints of one priority below
	// which traffic begins to go to the next. Envoy's overprovisioning factor is
	// 10,000 over it.
	HealthThreshold uint32

	HealthCheck      *HealthCheck
	OutlierDetection *OutlierDetection

	// TLS reports that endpoints speak TLS, and to whom they answer.
	TLS *UpstreamTLS

	// RemoteTLS is the same for the endpoints of localities that are Remote, if it
	// is another: proxies of other clusters may end TLS, which the backends behind
	// them, and those here, do not speak.
	RemoteTLS *UpstreamTLS

	// HTTP2 reports that endpoints speak HTTP/2 without being asked.
	HTTP2 bool
}

// An UpstreamTLS is how Envoy speaks TLS to endpoints.
type UpstreamTLS struct {
	// ServerName for SNI and for the certificate's check. Empty means the name that
	// the request carries.
	ServerName string

	// AltNames are what certificates may be for instead of ServerName: one must be
	// among them. None means ServerName.
	AltNames []AltName

	// CA is the bundle, in PEM, that certificates must chain to. Empty means those
	// that the system trusts.
	CA string
}

// An AltName is a subject alternative name of a certificate.
type AltName struct {
	// URI reports that Value is a URI, such as a SPIFFE ID, and not a DNS name.
	URI   bool
	Value string
}

// A Target is what a route's backendRef to one of our objects means.
type Target struct {
	Key   TargetKey
	Shape Shape

	// Localities in the order of priority, then name.
	Localities []Locality

	// Candidates are the endpoints that probes tell the health of, and Delays what is
	// waited for before traffic moves. None where the Shape has no HealthCheck.
	Candidates []Candidate
	Delays     Delays

	// Problem says why nothing can answer, for people. Empty when something can.
	Problem string

	// Refused says, for people, which hosts of the target nobody may connect to for it,
	// and why, where others answer. Where none does it is the Problem.
	Refused []string

	// Missing reports that the object, or its port, does not exist: the reference is
	// not valid, which Gateway API answers by 500 and not by 503.
	Missing bool
}
