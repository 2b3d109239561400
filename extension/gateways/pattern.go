// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// variables that patterns have.
type variables struct {
	service, tailnet, namespace string

	// domain of the tailnet. Empty while nothing tells it.
	domain string
}

// expand a pattern.
func (v variables) expand(pattern string) (string, error) {
	if v.domain == "" && strings.Contains(pattern, "{domain}") {
		return "", errors.New("The domain of the tailnet is not known yet")
	}
	// Values are names, which have no variables. A Replacer is slow to make.
	for name, value := range map[string]string{"{service}": v.service, "{tailnet}": v.tailnet, "{domain}": v.domain, "{namespace}": v.namespace} {
		pattern = strings.ReplaceAll(pattern, name, value)
	}
	return pattern, nil
}

// anyHost is the pattern of routes that are for any host.
const anyHost = "*"

// host of a pattern.
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
		return h, errors.Errorf("%q is no host name; change hostPattern", h)
	}
	return h, nil
}

// path of a pattern. Gateway API takes no notice of a slash at its end.
func (v variables) path(pattern string) (string, error) {
	p, err := v.expand(pattern)
	if err != nil {
		return "", err
	}
	return trimPath(p), nil
}

// trimPath of slashes at its end, so that equal prefixes are equal.
func trimPath(p string) string {
	if p = strings.TrimRight(p, "/"); p != "" {
		return p
	}
	return "/"
}

// domainOf a DNS name in a tailnet.
func domainOf(fqdn string) string {
	_, domain, _ := strings.Cut(strings.TrimSuffix(fqdn, "."), ".")
	return domain
}
