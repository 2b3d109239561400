// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
)

// A keptFile keeps a role's configuration for an agent that starts again while the API server is
// unavailable.
type keptFile struct {
	dir *atomicdir.Dir

	// unwritten is the configuration that the file lacks. Nil if it lacks none.
	unwritten []byte
}

// set replaces the content that write writes.
func (f *keptFile) set(s string) { f.unwritten = []byte(s) }

// write writes the content, unless it is written. A failure is retried in the loop's next step.
func (f *keptFile) write(at time.Time, r *retrier) {
	if f.unwritten == nil {
		return
	}
	if _, err := f.dir.Write(f.unwritten); err != nil {
		// Only a later run of the agent needs the file.
		r.failed(at, "Cannot keep "+f.dir.Name()+" for a restart of the agent", err)
		return
	}
	f.unwritten = nil
}
