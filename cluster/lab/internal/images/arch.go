// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package images

import "runtime"

// architecture of the lab's binaries: they are built here.
const architecture = runtime.GOARCH
