// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package host

// detach is a flag of Linux. The lab runs only there.
const detach = 0
