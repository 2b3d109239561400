// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package backendtls has the TLS of connections to backends: the authorities that ConfigMaps hold,
// and the settings of a connection, which always verify the certificate.
package backendtls
