// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package swarm

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// An audit records writes with their cluster. It is safe for concurrent use.
type audit struct {
	mu      sync.Mutex
	n       int
	records map[string]string // Cluster by the name of its record.
	foreign []string
}

func newAudit() *audit {
	return &audit{records: map[string]string{}}
}

// face returns a handler that records the calls of a cluster: each cluster has a separate port.
func (a *audit) face(cluster string) func(http.Handler) http.Handler {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records[registry.RecordName(service, cluster)] = cluster
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.note(cluster, r)
			h.ServeHTTP(w, r)
		})
	}
}

func (a *audit) note(cluster string, r *http.Request) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/oauth/") {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	if owner, ok := a.records[path.Base(r.URL.Path)]; ok && owner != cluster {
		a.foreign = append(a.foreign, fmt.Sprintf("%s of the record of %s by %s", r.Method, owner, cluster))
	}
}

// writes returns the number of writes of all clusters so far.
func (a *audit) writes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// violations returns the writes of another cluster's record.
func (a *audit) violations() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.foreign
}
