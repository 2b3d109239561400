// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package images

import "runtime"

// architecture is that of the lab's binaries, which are built on this machine.
const architecture = runtime.GOARCH
