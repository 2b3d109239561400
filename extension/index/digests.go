// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A digestPart is the part of an entry in the digests of its Gateways.
type digestPart struct {
	gateways []types.NamespacedName
	sum      uint64
}

// digestPartOf returns the part of the digest of one Gateway that contains a value. Without a value
// there is none.
func digestPartOf(gateway types.NamespacedName, value any) digestPart {
	if value == nil {
		return digestPart{}
	}
	return digestPart{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(value)}
}

// digests are the parts of the digests of Gateways, and the sums of targets' shapes:
// the shape of a target is summed up once, even if a thousand routes name the target.
type digests struct {
	parts   map[entry]digestPart
	targets map[ir.TargetKey]uint64
}

func newDigests() digests {
	return digests{parts: map[entry]digestPart{}, targets: map[ir.TargetKey]uint64{}}
}
