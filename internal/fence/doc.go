// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package fence decides which hosts of a Tailscale Service are dead although control has not noticed it.
// A node that takes a host and its controllers with it leaves clients without answers for about ten minutes
// (tailscale/tailscale#20661). So machines of other Kubernetes nodes or clusters, the witnesses, watch each
// host by disco pings. A host that a majority of its witnesses has lost is fenced: a provider withdraws the
// approval of the host, and control moves the addresses of the service to another one.
//
// The package has no clock, no state beside a Tracker's and sends nothing. The agents ping for a Tracker, and
// the controller of fences executes what Plan returns.
package fence
