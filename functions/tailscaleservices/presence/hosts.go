// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"regexp"
	"slices"
	"strings"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Count returns the number of hosts with a property.
func Count(hosts []tailnetv1alpha1.ServiceHost, match func(tailnetv1alpha1.ServiceHost) bool) int32 {
	n := int32(0)
	for _, h := range hosts {
		if match(h) {
			n++
		}
	}
	return n
}

// IsMachine reports whether a host is a machine of endpoints. The provider reports this by the
// machine's node ID. Otherwise the host's name decides: the first label is the name that the
// machine requested, with -1, -2 and so on if that was in use. Machines request a name with a hash.
func IsMachine(p tailnetv1alpha1.ProxySet, h tailnetv1alpha1.ServiceHost) bool {
	if h.Endpoints != "" {
		return h.Endpoints == p.Spec.Endpoints
	}
	label := names.InTailnet(h.Name)
	for _, m := range p.Spec.Sets {
		wanted := make([]string, m.Replicas)
		for i := range m.Replicas {
			wanted[i] = names.Host(p.GetNamespace(), names.Machine(m.Name, i))
		}
		base := cutNumber(label)
		for _, n := range []string{label, base} {
			if slices.Contains(wanted, n) || slices.Contains(wanted, unique.ReplaceAllString(n, "")) {
				return true
			}
		}
	}
	return false
}

// unique matches what names.UniqueHost appends.
var unique = regexp.MustCompile(`-[0-9a-f]{8}$`)

// cutNumber returns a name without a suffix -1, -2 and so on. It is empty if the name has none.
func cutNumber(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return ""
	}
	return name[:i]
}
