// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package sidebyside measures us and Tailscale's own operator in one lab: the same
// cluster, the same tailnet, the same backend, in turns. Here is how both are
// installed, used and watched; which figures come of it and what their goals are
// is the caller's.
//
// What our composites cost Crossplane, and how soon a route of a Gateway answers in the
// tailnet, is measured in such a lab, too.
//
// Everything goes through the command lines of cluster/lab and cluster/demo, as a
// person would do it. Where one side starts, its pods and proxies are up already.
package sidebyside
