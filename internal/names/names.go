// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package names says what children of our objects are called. Functions give these
// names, and others find the children by them. It is pure, and imports nothing.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// maxChildName leaves room for what Kubernetes appends to a StatefulSet's
	// name in a label of its pods, -<10 characters>, within 63.
	maxChildName = 52

	// maxDNSLabel is the length of a DNS label.
	maxDNSLabel = 63

	// hashLength in hexadecimal digits.
	hashLength = 8
)

// Child joins parts by dashes into a DNS label of at most 52 characters.
//
// Two lists of as many parts never give one name: -<8 hexadecimal digits> of a
// hash of the parts are appended when the joined parts are too long, when one of
// them has a character that a DNS label may not have (a dash takes its place), or
// when a part after the first has a dash, for then web,a-b and web-a,b would
// meet.
func Child(parts ...string) string {
	ambiguous := false
	for _, p := range parts[1:] {
		ambiguous = ambiguous || strings.Contains(p, "-")
	}
	return join(maxChildName, ambiguous, parts)
}

// Machine is the name of the Machine, and so of the pod and its state Secret,
// of a StatefulSet's replica.
func Machine(set string, i int32) string {
	return set + "-" + strconv.Itoa(int(i))
}

// Host is what a Machine of a namespace is called in the tailnet: both joined
// by a dash within a DNS label, with a hash only when that is too long.
func Host(namespace, machine string) string {
	return join(maxDNSLabel, false, []string{namespace, machine})
}

// UniqueHost makes a name of Host one that nobody else gives: a-b,c and a,b-c do, and so do
// two clusters with the same objects. It always has a hash, of all that tells the machine
// from others.
func UniqueHost(host string, of ...string) string {
	return withHash(maxDNSLabel, host, append([]string{host}, of...))
}

// Service makes the name of a child one that a Service may have: it must
// start with a letter.
func Service(name string) string {
	if name == "" || name[0] < '0' || name[0] > '9' {
		// The schema lets some names be empty: nothing is called so.
		return name
	}
	return Child("ts", name)
}

// EndpointService is the name of the Service of an endpoint of a TailscaleEndpoints: both
// joined by a dash, with a hash where that is too long, or the Service of proxies could be
// called so. Others may give the same one: a-b,c and a,b-c do.
func EndpointService(owner, endpoint string) string {
	for _, d := range []string{"ingress", "egress"} {
		if endpoint == d || strings.HasSuffix(endpoint, "-"+d) {
			return OtherEndpointService(owner, endpoint)
		}
	}
	return Service(join(maxDNSLabel, false, []string{owner, endpoint}))
}

// OtherEndpointService is for when EndpointService gives a name that another has. It always
// has a hash.
func OtherEndpointService(owner, endpoint string) string {
	return Service(join(maxDNSLabel, true, []string{owner, endpoint}))
}

// TailscaleService joins parts into the DNS label that a Tailscale Service is called
// by, without svc:, with a hash only when that is too long. Others may give the same
// one: a-b,c and a,b-c do.
func TailscaleService(parts ...string) string { return join(maxDNSLabel, false, parts) }

// OtherTailscaleService is for when TailscaleService gives a name that another has. It
// always has a hash.
func OtherTailscaleService(parts ...string) string { return join(maxDNSLabel, true, parts) }

// ServiceEndpoint is the name of the endpoint that a Tailscale Service becomes which was
// discovered, with or without svc: in front.
func ServiceEndpoint(service string) string {
	return Host("svc", strings.TrimPrefix(service, "svc:"))
}

// HealthReport is the name of the HealthReport of an object of ours.
func HealthReport(kind, name string) string { return Child(strings.ToLower(kind), name) }

// GatewayReport is the name of the GatewayReport of a TailscaleGateway.
func GatewayReport(name string) string { return Child("tailscalegateway", name) }

// ExtensionLease is the name of the Lease by which replicas of an extension settle who
// writes that serves one Gateway alone. A namespace may have several.
func ExtensionLease(gateway string) string { return Child("tailscale-gateway-extension", gateway) }

// RoutePolicyDiscovery is the name of the Discovery that looks for devices of a
// TailscaleRoutePolicy. What it looks for is a hash.
func RoutePolicyDiscovery(policy, query string) string {
	return Child("tailscaleroutepolicy", policy, query)
}

func join(limit int, hash bool, parts []string) string {
	joined := strings.Join(parts, "-")
	name := strings.Map(dnsLabelRune, strings.ToLower(joined))
	if name == joined && len(name) <= limit && !hash {
		return name
	}
	return withHash(limit, name, parts)
}

// withHash appends a hash of the parts to a name that is cut to leave room for it.
func withHash(limit int, name string, parts []string) string {
	// No part can hold a slash, so no two lists have one sum.
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	if most := limit - hashLength - 1; len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(name, "-") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

func dnsLabelRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}
