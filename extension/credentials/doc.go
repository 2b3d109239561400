// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package credentials makes the certificates of an extension that gets none by flags, and stores
// them in Secrets of its namespace: an authority, the certificates of its servers, and those that
// Envoy Gateway and Envoys present. A Keeper does so in the extension itself, for a dedicated
// extension, and a Writer in a Job of the chart. Replicas and Jobs agree through the API server: the
// first one to write wins, and the others use its Secrets.
package credentials
