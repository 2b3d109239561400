// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

func policiesOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleRoutePolicyKind, Namespace: namespace}
}

func gatewaysOf(namespace string) refgrant.Referrer {
	return refgrant.Referrer{Group: gwapiv1.GroupName, Kind: parse.KindGateway, Namespace: namespace}
}
