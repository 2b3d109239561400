// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets reads only the Secrets whose certificates Envoys present to backends. Each has a
// separate watch, for which a Role with its name is enough. Other packages make and use the
// certificates.
package secrets
