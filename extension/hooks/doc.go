// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks answers Envoy Gateway's extension hooks from the index's snapshot. It makes no
// calls, and changes only resources of routes with Tailscale backends, policies or identity
// headers.
//
// A Tailscale backend is a TailscaleServices or a TailscaleEndpoints. The other backends of a rule
// are its siblings: Envoy Gateway resolves them.
//
// A translation takes three steps, each with a separate result, before it changes anything. It
// collects the uses of rules that name a Tailscale backend (collect.go), chooses what becomes of each
// rule and what the clusters of its backends need (choose.go), and names these clusters: the one that
// routes to one target share, or another (naming.go, share.go). Then it applies the plans to routes and
// filters (rewrite.go, tcp.go, udp.go). The name of an HTTP rule's cluster never
// has the rule's index: a cluster that is not shared is named after its route and its destination
// (package index), so that no request reaches another rule's target while rules move. A
// TailscaleRevision in a request may be newer than the snapshot; the hook answers nevertheless, and
// reports the difference (revision.go). Package xds builds the clusters; package eds serves their
// endpoints.
package hooks
