// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package index holds the objects that the extension has seen, and builds a new Snapshot of
// package ir when one of them changes. A Store recomputes only the parts that depend on the
// changed object, and has a digest of the contents that each Gateway depends on. Package
// parse reads the objects, package xds finds the rules of policies that Envoy would refuse, and
// package watch delivers the objects to the Store.
//
// A change takes this way through the types of the package:
//
//	Change ──Read──> reading             parsed without the lock
//	   │ Apply
//	   v
//	 input ──put──> objects              what the API server has, by kind
//	   │
//	   v
//	pending                              what the change may affect:
//	   ├── entries                         a route, a policy, a certificate, a bootstrap
//	   └── refs                            lookups with another result
//	   │
//	   v
//	 edit                                the next Snapshot, section by section
//	   ├── entries are recomputed          from objects; they name dependents
//	   ├── dependents are rebuilt          a target, or the endpoints of a Service; a view
//	   │                                   reads objects, and records its lookups as refs
//	   └── digests are summed up           one part for each entry and Gateway
//	   │
//	   v
//	ir.Snapshot ──> hooks                when a Gateway's digest has changed
//	            ──> Subscriptions        names of endpoint lists that have changed
//
// A section (sections.go) is one kind of content with its entries. The types of a change and
// of its effects (change.go, edit.go, view.go) are below the sections, and the functions that go through
// all of them (apply.go, set.go) are above. Shares limit what the objects of one namespace may add:
// endpointShares, objectShares and insertions.
package index
