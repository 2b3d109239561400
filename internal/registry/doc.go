// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package registry decides how clusters share a Tailscale Service: what a
// cluster's record is, who is a member, who lives, what the shared service is to
// say, and what one cluster must do next. It has no clock, no state and makes no
// calls of its own: a caller gives it a view of the tailnet, and an API to carry
// out one action at a time. When to look again, and how to tell people, is the
// business of the controller of VIPServices.
//
// Tailscale's API cannot compare and swap. So each cluster has a Tailscale
// Service of its own beside the shared one, which nobody else writes, and whose
// annotations are its record. Members are those records, found in the list of
// services. What is on the shared service is derived from them and can be lost,
// overwritten or be late without harm:
//
//   - Who attaches writes its record first, then sees to the shared service.
//   - Who detaches deletes its record, waits until no request of its own can
//     still be on its way, and looks again: if no living record is left, it
//     deletes the shared service.
//   - Who finds the shared service gone makes it again, with the IPv4 address
//     that the records remember.
//
// A deletion that races with an attachment is thus fixed by the attacher at its
// next look. Time is that of Tailscale's API alone.
package registry
