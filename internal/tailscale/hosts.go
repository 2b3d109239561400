// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Hosts are the hosts to which clients send requests and where nodes log in: HOST for https on port
// 443, HOST:PORT, or HOST:* for any port.
type Hosts []string

// Validate returns an error if an entry is not a host.
func (h Hosts) Validate() error {
	for _, e := range h {
		u, err := url.Parse("https://" + strings.TrimSuffix(e, ":*"))
		if err != nil || u.Hostname() == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" {
			return errors.Errorf("%q is no host: it must be HOST, HOST:PORT or HOST:*", e)
		}
	}
	return nil
}

// Allow reports whether the list includes the host of a URL.
func (h Hosts) Allow(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return slices.ContainsFunc(h, func(e string) bool {
		e = strings.ToLower(e)
		if name, ports := strings.CutSuffix(e, ":*"); ports {
			return strings.Trim(name, "[]") == host
		}
		// An entry without a port permits only https.
		return e == net.JoinHostPort(host, port) || port == "443" && u.Scheme == "https" && strings.Trim(e, "[]") == host
	})
}

// HostOf returns the host and the port of a URL in the form that Hosts uses.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if u.Port() == "" && u.Scheme == "http" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return u.Host
}
