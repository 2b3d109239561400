// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import "tailscale.com/ipn"

// Update applies a notification to peers.
func Update(p *Peers, n ipn.Notify) { p.update(n) }
