// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact removes keys from texts that other programs write. The package is pure.
package redact

import "regexp"

// replacement stands for a key.
const replacement = "tskey-***"

// keys matches all secrets that Tailscale and Headscale issue, auth keys that are wrapped for tailnet
// lock (tailscale.com tka, DecodeWrappedAuthkey), and private keys (types/key). The suffix of a wrapped
// key is standard base64, so its alternative is the first.
var keys = regexp.MustCompile(`[th]skey-[A-Za-z0-9_-]*--TL[A-Za-z0-9+/-]+|[th]skey-[A-Za-z0-9_-]+|(?:nlpriv|privkey):[0-9A-Fa-f]+`)

// Keys returns a text without keys.
func Keys(s string) string { return keys.ReplaceAllString(s, replacement) }
