// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile brings objects in the Kubernetes API to the state that an index's snapshot
// describes. Every replica of the extension does this at the same time, without leader
// election. The packages resync and placeholder define the objects.
//
// A Lease would delay each change for up to 17 s after its holder crashes: the Lease is valid for
// 15 s, and other replicas try to get it every 2 s (internal/leader). Until then Envoy Gateway
// would not translate again, and Envoys would not get the clusters of new backends. Objects that
// no traffic waits for, such as status and reports, are written by the holder of the Lease.
//
// Replicas with the same information desire the same state: the replica that observes a change
// first writes it, and the others find the object up to date. A replica whose informers lag
// must not restore an older state. Therefore a replica waits before it replaces a state that it
// has never desired: that state is probably the one that it desires next. A state that the
// replica desired earlier is outdated, and is replaced at once. Every write names the version
// of the object that it replaces.
package reconcile
