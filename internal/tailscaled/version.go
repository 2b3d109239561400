// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaled knows the versions of tailscaled and containerboot that tests run with, and the
// first version that knows each setting of proxies. The package is pure.
package tailscaled

import (
	"strconv"
	"strings"
)

// The versions of tailscaled that tests run with, from the oldest to the newest one. Later
// patches of the newest minor version belong to the range.
const (
	Oldest = "1.86.2"
	Newest = "1.104.5"
)

// Release returns the release that a version of tailscaled belongs to, such as 1.102.5
// for 1.102.5-t0123456-g789abcd (tailscale.com version.Long), or false if it has another form.
func Release(version string) (string, bool) {
	_, ok := release(version)
	short, _, _ := strings.Cut(version, "-")
	return short, ok
}

// Tested reports whether tests run with a version of tailscaled, or with an older and
// a newer one. A version of another form is not tested.
func Tested(version string) bool {
	v, ok := release(version)
	if !ok {
		return false
	}
	oldest, _ := release(Oldest)
	newest, _ := release(Newest)
	newer := v[0] > newest[0] || v[0] == newest[0] && v[1] > newest[1]
	return !newer && !less(v, oldest)
}

// SendsClients reports whether tailscaled sends the client's address to what it forwards
// connections to, by the PROXY protocol. A version of another form counts as a current one.
func SendsClients(version string) bool { return knows(version, proxyProtocol) }

// AsksForKeys reports whether containerboot asks for an auth key when its node cannot log in:
// versions before 1.96.2 exit (cmd/containerboot/main.go of tailscale.com v1.96.0, authLoop; v1.96.2 has
// setAndWaitForAuthKeyReissue). A version of another form counts as a current one.
func AsksForKeys(version string) bool {
	v, ok := release(version)
	return !ok || !less(v, [3]int{1, 96, 2})
}

// release returns the numbers of a version.
func release(version string) (v [3]int, ok bool) {
	short, _, _ := strings.Cut(version, "-")
	parts := strings.Split(short, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
