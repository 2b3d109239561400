// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// A Traffic counts the responses of a handler. It is safe for concurrent use.
type Traffic struct {
	mu    sync.Mutex
	total Responses
}

// Responses are the responses of a handler to requests that read.
type Responses struct {
	// Reads is the number of requests that read, and Writes that of all others. Logins are neither.
	Reads, Writes int

	// Bytes of the bodies of reads, and Took is how long the handler worked until it had sent them.
	Bytes int64
	Took  time.Duration
}

// Observe returns a handler that counts the responses of another one.
func (t *Traffic) Observe(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &countingWriter{ResponseWriter: w}
		h.ServeHTTP(c, r)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/oauth/token"):
			return // A login writes nothing.
		case r.Method != http.MethodGet:
			t.total.Writes++
			return
		}
		t.total.Reads++
		t.total.Bytes += c.bytes
		t.total.Took += time.Since(began)
	})
}

// Since returns what has been added to an earlier total.
func (t *Traffic) Since(earlier Responses) Responses {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Responses{
		Reads: t.total.Reads - earlier.Reads, Writes: t.total.Writes - earlier.Writes,
		Bytes: t.total.Bytes - earlier.Bytes, Took: t.total.Took - earlier.Took,
	}
}

// A countingWriter counts the bytes of a body.
type countingWriter struct {
	http.ResponseWriter

	bytes int64
}

// Write implements io.Writer.
func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Processor returns the processor time of a process since its start.
func Processor(p *apiserver.Process) (time.Duration, error) {
	// The clock ID of a process is the complement of its PID, and 2 selects the scheduler's time
	// (clock_getcpuclockid(3)).
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID()<<3|2), &ts); err != nil {
		return 0, errors.Wrapf(err, "cannot read the processor time of process %d", p.PID())
	}
	return time.Duration(ts.Nano()), nil
}
