// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// ReasonInvalidTLS is a reason of Accepted: what a spec says of TLS does not fit
// its ports.
const ReasonInvalidTLS xpv2.ConditionReason = "InvalidTLS"

// Reasons of DiscoverySuccessful.
const (
	ReasonDiscovered     xpv2.ConditionReason = "Discovered"
	ReasonCannotDiscover xpv2.ConditionReason = "CannotDiscover"
)
