// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks answers Envoy Gateway's extension hooks from the index's snapshot.
// It calls nothing, and changes nothing that no route of ours needs changed.
//
// A translation gathers what the message does with rules that name one of ours
// (use.go), decides about each (decide.go), finds the cluster that routes to one
// target share (share.go), and changes routes and filters (rewrite.go, tcp.go,
// udp.go). No cluster of an HTTP rule keeps a name with the rule's index: one that
// shares none is called by its route and what it leads to (package index), so that no
// request reaches another rule's target while rules move. What is asked for may be newer
// than the snapshot: it is answered all the same, and told (revision.go). What a cluster
// of ours is like lives in package xds; endpoints come from package eds.
package hooks
