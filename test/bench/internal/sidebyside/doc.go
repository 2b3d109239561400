// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package sidebyside measures the project and Tailscale's own operator in one lab: in the same
// cluster, with the same tailnet and the same backend, in turns. It installs, uses and watches
// both. The figures and their goals are in the caller.
//
// The load of the composites on Crossplane, and how soon a route of a Gateway answers in the
// tailnet, are measured in such a lab, too.
//
// The package uses the command lines of cluster/lab and cluster/demo. The pods and proxies of a
// side are up before its measurements start.
package sidebyside
