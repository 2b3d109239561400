// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets reads the Secrets whose certificates Envoys present to backends, and
// those alone: each by a watch of its own, for which a Role with its name is enough.
// What the certificates are for is decided elsewhere, and who makes them, too.
package secrets
