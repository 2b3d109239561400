// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package names builds the names of children. Functions create objects with these names, and
// other components find the objects by them. It is pure, and imports nothing.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// maxChildName leaves room within 63 characters for the suffix -<10 characters> that
	// Kubernetes appends to a StatefulSet's name in a label of its pods.
	maxChildName = 52

	// maxDNSLabel is the maximum length of a DNS label.
	maxDNSLabel = 63

	// hashLength is the number of hexadecimal digits.
	hashLength = 8
)

// Child joins parts with dashes to a DNS label of at most 52 characters.
//
// Two different lists with the same number of parts never have the same name: a suffix -<8
// hexadecimal digits> with a hash of the parts is appended if the joined parts are too long, if
// one of them has a character that a DNS label may not have (a dash replaces it), or if a part
// after the first has a dash, because web,a-b and web-a,b would collide otherwise.
func Child(parts ...string) string {
	ambiguous := false
	for _, p := range parts[1:] {
		ambiguous = ambiguous || strings.Contains(p, "-")
	}
	return join(maxChildName, ambiguous, parts)
}

// Machine returns the name of the Machine, and of the pod and its state Secret, of a
// StatefulSet's replica.
func Machine(set string, i int32) string {
	return set + "-" + strconv.Itoa(int(i))
}

// Host returns the hostname of a Machine in the tailnet: the namespace and the name joined with
// a dash to a DNS label, with a hash only if it is too long.
func Host(namespace, machine string) string {
	return join(maxDNSLabel, false, []string{namespace, machine})
}

// InTailnet returns the name of a device in its tailnet, which is the first label of its DNS name.
func InTailnet(dnsName string) string {
	label, _, _ := strings.Cut(dnsName, ".")
	return label
}

// UniqueHost builds a unique name from a name of Host, because a-b,c and a,b-c have the same,
// and so have two clusters with the same objects. It always appends a hash of everything that
// identifies the machine.
func UniqueHost(host string, ids ...string) string {
	return withHash(maxDNSLabel, host, append([]string{host}, ids...))
}

// IsUniqueHost reports whether UniqueHost may have built the name from this name of Host.
func IsUniqueHost(name, host string) bool {
	prefix := UniqueHost(host)
	hash, ok := strings.CutPrefix(name, prefix[:len(prefix)-hashLength])
	return ok && len(hash) == hashLength && strings.Trim(hash, "0123456789abcdef") == ""
}

// Service makes the name of a child a valid Service name, which must start with a letter.
func Service(name string) string {
	if name == "" || name[0] < '0' || name[0] > '9' {
		// The schema allows some names to be empty: no object has an empty name.
		return name
	}
	return Child("ts", name)
}

// EndpointService returns the name of the Service of an endpoint of a TailscaleEndpoints: both
// names joined with a dash, with a hash if it is too long, or if it could be the name of a
// Service of proxies. Names can collide: a-b,c and a,b-c have the same.
func EndpointService(owner, endpoint string) string {
	for _, d := range []string{"ingress", "egress"} {
		if endpoint == d || strings.HasSuffix(endpoint, "-"+d) {
			return OtherEndpointService(owner, endpoint)
		}
	}
	return Service(join(maxDNSLabel, false, []string{owner, endpoint}))
}

// OtherEndpointService returns an alternative for a name of EndpointService that is in use. It
// always has a hash.
func OtherEndpointService(owner, endpoint string) string {
	return Service(join(maxDNSLabel, true, []string{owner, endpoint}))
}

// TailscaleService joins parts to the DNS label of a Tailscale Service, without svc:, with a
// hash only if it is too long. Names can collide: a-b,c and a,b-c have the same.
func TailscaleService(parts ...string) string { return join(maxDNSLabel, false, parts) }

// OtherTailscaleService returns an alternative for a name of TailscaleService that is in use.
// It always has a hash.
func OtherTailscaleService(parts ...string) string { return join(maxDNSLabel, true, parts) }

// ServiceEndpoint returns the name of the endpoint for a discovered Tailscale Service, whose
// name may begin with svc:.
func ServiceEndpoint(service string) string {
	return Host("svc", strings.TrimPrefix(service, "svc:"))
}

// HealthReport returns the name of an object's HealthReport.
func HealthReport(kind, name string) string { return Child(strings.ToLower(kind), name) }

// GatewayReport returns the name of a TailscaleGateway's GatewayReport.
func GatewayReport(name string) string { return Child("tailscalegateway", name) }

// ExtensionLease returns the name of the Lease for the leader election of a dedicated
// extension. A namespace may have several.
func ExtensionLease(gateway string) string { return Child("tailscale-gateway-extension", gateway) }

// ExtensionCertificates returns the name of the Secret with all certificates of a dedicated
// extension, by the name of its ServiceAccount.
func ExtensionCertificates(account string) string { return account + "-certificates" }

// ExtensionClient returns the name of the Secret with the certificate that Envoy Gateway presents to
// a dedicated extension, and with the authority of the extension's own one.
func ExtensionClient(account string) string { return account + "-client" }

// RoutePolicyDiscovery returns the name of the Discovery that finds devices of a
// TailscaleRoutePolicy. The query is hashed.
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

// withHash appends a hash of the parts to a name, which it cuts to leave room for the hash.
func withHash(limit int, name string, parts []string) string {
	// Parts cannot contain a slash, so different lists have different texts.
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
