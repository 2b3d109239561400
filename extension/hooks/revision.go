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

// An Answer identifies the state from which a Gateway was translated.
type Answer struct {
	Gateway types.NamespacedName

	// Revision is the revision in the Gateway's TailscaleRevision, and Digest the snapshot's digest
	// of the Gateway. They differ while this replica or Envoy Gateway lags.
	Revision, Digest string
}

// answers returns the answers to the TailscaleRevisions of a message, which has several if Gateways
// are merged. An unreadable object counts as no request.
func answers(s *ir.Snapshot, rs []*pb.ExtensionResource) []Answer {
	var out []Answer
	for _, r := range rs {
		o := v1alpha1.TailscaleRevision{}
		if err := json.Unmarshal(r.GetUnstructuredBytes(), &o); err != nil || o.Kind != v1alpha1.TailscaleRevisionKind {
			continue
		}
		for _, t := range o.Spec.TargetRefs {
			n := types.NamespacedName{Namespace: o.Namespace, Name: string(t.Name)}
			out = append(out, Answer{Gateway: n, Revision: o.Spec.Revision, Digest: s.GatewayDigest(n)})
		}
	}
	return out
}
