// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/netip"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// dialTarget returns what Envoys dial as a gRPC target. An ADDRESS:PORT, brackets or
// not, becomes one of its family, which gRPC wants to be named, and which whoever
// writes a manifest cannot know; anything else is a target already.
//
// A variable that Kubernetes did not put in is an error: the Service of that name was
// not there when the pod was made.
func dialTarget(s string) (string, error) {
	if strings.Contains(s, "$(") {
		return "", errors.Errorf("--eds-target %q names a Service that was made after this pod, or never: delete the pod once it is there", s)
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

// family of an address, as gRPC names it.
func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}
