// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import "golang.org/x/sys/unix"

// detach is the flag that unmounts mount points in use.
const detach = unix.MNT_DETACH
