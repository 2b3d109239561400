// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package registry decides how clusters share a Tailscale Service: the content of a cluster's
// record, which clusters are members, which are alive, the state of the shared service, and the
// next actions of a cluster. The package has no clock and no state, and sends no requests: a caller
// passes a view of the tailnet, and package apply runs the actions. The controller of VIPServices
// decides when to plan again, and reports the results to users.
//
// Tailscale's API has no compare-and-swap. So each cluster has a separate Tailscale Service
// in addition to the shared one. Only that cluster writes it, and its annotations are the
// cluster's record. The members are the records in the list of services. The state of the
// shared service is derived from the records, so it can be lost, overwritten or outdated
// without harm:
//
//   - A cluster that attaches writes its record first, then the shared service.
//   - A cluster that detaches deletes its record, waits until none of its requests can still be
//     in transit, and lists the services again: if no record of a live cluster is left, it
//     deletes the shared service.
//   - A cluster that finds the shared service missing creates it again, with the IPv4 address
//     in the records.
//
// If a deletion races with an attachment, the attaching cluster thus repairs the service when
// it next observes it. All times are by the clock of Tailscale's API.
package registry
