// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"encoding/json"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// An Answer is what a Gateway was translated from.
type Answer struct {
	Gateway types.NamespacedName

	// Asked is the revision in the Gateway's TailscaleRevision, and Given the
	// snapshot's digest of the Gateway. They differ if this replica lags, or Envoy
	// Gateway.
	Asked, Given string
}

// answers to the TailscaleRevisions of a message: of merged Gateways there are several.
// What cannot be read asks for nothing.
func answers(s *ir.Snapshot, rs []*pb.ExtensionResource) []Answer {
	var out []Answer
	for _, r := range rs {
		o := v1alpha1.TailscaleRevision{}
		if err := json.Unmarshal(r.GetUnstructuredBytes(), &o); err != nil || o.Kind != v1alpha1.TailscaleRevisionKind {
			continue
		}
		for _, t := range o.Spec.TargetRefs {
			n := types.NamespacedName{Namespace: o.Namespace, Name: string(t.Name)}
			out = append(out, Answer{Gateway: n, Asked: o.Spec.Revision, Given: s.GatewayDigest(n)})
		}
	}
	return out
}
