// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// variables holds the values of the variables in patterns.
type variables struct {
	service, tailnet, namespace string

	// domain of the tailnet. Empty if unknown.
	domain string
}

// expand replaces the variables in a pattern.
func (v variables) expand(pattern string) (string, error) {
	if v.domain == "" && strings.Contains(pattern, "{domain}") {
		return "", errors.New("The domain of the tailnet is not known yet")
	}
	// Values are names and contain no variables. Creating a Replacer would be slow.
	for name, value := range map[string]string{"{service}": v.service, "{tailnet}": v.tailnet, "{domain}": v.domain, "{namespace}": v.namespace} {
		pattern = strings.ReplaceAll(pattern, name, value)
	}
	return pattern, nil
}

// anyHost is the pattern for any host.
const anyHost = "*"

// host expands a pattern and validates the host.
func (v variables) host(pattern string) (string, error) {
	if pattern == anyHost {
		return anyHost, nil
	}
	h, err := v.expand(pattern)
	if err != nil {
		return "", err
	}
	check := validation.IsDNS1123Subdomain
	if strings.HasPrefix(h, "*.") {
		check = validation.IsWildcardDNS1123Subdomain
	}
	if len(check(h)) > 0 {
		return h, errors.Errorf("%q is not a host name; change hostPattern", h)
	}
	return h, nil
}

// path expands a pattern. Gateway API ignores a slash at the end of a path prefix.
func (v variables) path(pattern string) (string, error) {
	p, err := v.expand(pattern)
	if err != nil {
		return "", err
	}
	return trimPath(p), nil
}

// trimPath removes slashes at the end, so that equal prefixes have equal strings.
func trimPath(p string) string {
	if p = strings.TrimRight(p, "/"); p != "" {
		return p
	}
	return "/"
}

// domainOf returns the domain of a DNS name in a tailnet.
func domainOf(fqdn string) string {
	_, domain, _ := strings.Cut(strings.TrimSuffix(fqdn, "."), ".")
	return domain
}

// domain returns the DNS domain of the tailnet of TailscaleEndpoints.
func domain(endpoints []*gatewayv1alpha1.TailscaleEndpoints) string {
	for _, e := range endpoints {
		for _, d := range e.Status.Devices {
			if n := domainOf(d.TailscaleFQDN); n != "" {
				return n
			}
		}
		for _, d := range e.Status.DiscoveredEndpoints {
			if n := domainOf(d.TailscaleFQDN); n != "" {
				return n
			}
		}
	}
	return ""
}
