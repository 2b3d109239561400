// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
)

// sharingOf returns how clusters share the service. wish is the spec's sharing, vip the observed
// service in the tailnet or nil, and set the set of clusters that the tailnet names. A service that
// is shared stays so, because other clusters may depend on it.
func sharingOf(wish gatewayv1alpha1.Sharing, vip *tailnetv1alpha1.VIPService, set tailnetv1alpha1.ClusterSetName) tailnetv1alpha1.Sharing {
	switch {
	case wish == gatewayv1alpha1.SharingShared:
		return tailnetv1alpha1.SharingShared
	case vip != nil && vip.Spec.ForProvider.Sharing.IsShared():
		return vip.Spec.ForProvider.Sharing
	case wish == "" && set != "":
		return tailnetv1alpha1.SharingClusterSet
	}
	return tailnetv1alpha1.SharingExclusive
}

// withSharing adds to the facts how clusters share the service in a tailnet.
func (f facts) withSharing(tailnet string, set tailnetv1alpha1.ClusterSetName) facts {
	vip := f.vip
	if presence.Tailnet(vip) != tailnet {
		vip = nil
	}
	f.sharing = sharingOf(f.spec.Sharing, vip, set)
	return f
}

// shared reports whether other clusters may also define the service.
func (f facts) shared() bool { return f.sharing.IsShared() }

// drains reports whether this cluster hands the service to others.
func (f facts) drains() bool { return f.shared() && (f.spec.Drain || f.access.Drain) }

// asksDrain reports whether the user asks for a drain, also of a service that is not shared.
func (f facts) asksDrain() bool { return f.spec.Drain || f.access.Drain && f.shared() }

// staysShared reports whether the service is shared although the spec asks for one that belongs to
// this cluster alone.
func (f facts) staysShared() bool {
	return f.shared() && f.spec.Sharing == gatewayv1alpha1.SharingExclusive
}
