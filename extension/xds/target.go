// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"net"
	"net/netip"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// DialTarget returns the gRPC target that Envoys dial. An ADDRESS:PORT, with or without brackets,
// becomes a target with its address family, which gRPC requires and the author of a manifest cannot
// know; other values are targets already.
//
// A variable that Kubernetes did not replace is an error: the Service of that name did not exist
// when the pod was created.
func DialTarget(s string) (string, error) {
	if strings.Contains(s, "$(") {
		return "", errors.Errorf("--eds-target %q names a Service that was created after this pod, or never: delete the pod once the Service exists", s)
	}
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		if addr, ok := address(host); ok {
			return family(addr) + ":" + net.JoinHostPort(host, port), nil
		}
	}
	return s, nil
}

func address(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	return addr, err == nil
}

// family returns the family of an address, as gRPC names it.
func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}
