// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package gitops runs the health checks of deploy as Argo CD and Flux run them: Lua scripts with
// the library and the restrictions of Argo CD, and CEL expressions with the environment of Flux.
// Its tests also check the examples that install everything by these tools. It is for tests only.
package gitops
