// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply runs the actions that package registry plans: it reads each service, and writes or
// deletes it by Tailscale's API. A pass views the tailnet, plans, and applies the plan.
package apply
