// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestLeaseOf checks for which Lease the replicas of an extension contend.
func TestLeaseOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		gateway *types.NamespacedName
		want    string
	}{
		"All":       {reason: "The extension of all Gateways has a Lease.", want: "tailscale-gateway-extension-health"},
		"Dedicated": {reason: "That of a Gateway has another one, in the namespace of the extension.", gateway: &types.NamespacedName{Namespace: "shop", Name: "web"}, want: "tailscale-gateway-extension-web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, leaseOf(tc.gateway)); diff != "" {
				t.Errorf("%s\nleaseOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
