// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestHost verifies which hosts need a permission. TestForeignBackends of the function verifies who
// gives it.
func TestHost(t *testing.T) {
	p := Permissions{Namespace: "shop", Services: map[types.NamespacedName]Permission{
		{Namespace: "other", Name: "granted"}: Permitted, {Namespace: "other", Name: "lost"}: Lost,
	}}
	cases := map[string]struct {
		reason string
		host   string
		want   Permission
	}{
		"Own":      {reason: "A Service of the namespace needs none.", host: "web.shop.svc", want: Permitted},
		"External": {reason: "Nor does a host that is no Service.", host: "example.com", want: Permitted},
		"Granted":  {reason: "One of another namespace needs a grant.", host: "granted.other.svc", want: Permitted},
		"Domain":   {reason: "The cluster's domain does not matter.", host: "granted.other.svc.cluster.local", want: Permitted},
		"Lost":     {reason: "Envoy Gateway may create the Service of a Gateway again.", host: "lost.other.svc", want: Lost},
		"Denied":   {reason: "Others are denied.", host: "secret.other.svc", want: Denied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := p.Host(tc.host); got != tc.want {
				t.Errorf("\n%s\nHost(%q): want %d, got %d", tc.reason, tc.host, tc.want, got)
			}
		})
	}
}
