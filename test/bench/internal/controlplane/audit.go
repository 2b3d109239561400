// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// auditPolicy records each write once.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
`

// Writes counts writes of the API server's objects by client, which is the name of a program, and by resource.
type Writes map[string]map[string]int

// Total returns all writes of a client.
func (w Writes) Total(program string) int {
	n := 0
	for _, resources := range w[program] {
		n += resources
	}
	return n
}

// Since returns the writes that have been added to an earlier count.
func (w Writes) Since(earlier Writes) Writes {
	out := Writes{}
	for program, resources := range w {
		for r, n := range resources {
			if n -= earlier[program][r]; n > 0 {
				if out[program] == nil {
					out[program] = map[string]int{}
				}
				out[program][r] = n
			}
		}
	}
	return out
}

// An audit reads the API server's audit log.
type audit struct {
	dir string

	mu     sync.Mutex
	offset int64
	writes Writes
	last   time.Time
}

func newAudit(dir string) (*audit, error) {
	a := &audit{dir: dir, writes: Writes{}}
	return a, errors.Wrap(os.WriteFile(filepath.Join(dir, "audit.yaml"), []byte(auditPolicy), 0o600), "cannot write an audit policy")
}

func (a *audit) log() string { return filepath.Join(a.dir, "audit.log") }

// flags returns the API server's flags.
func (a *audit) flags() map[string]string {
	return map[string]string{"audit-policy-file": filepath.Join(a.dir, "audit.yaml"), "audit-log-path": a.log()}
}

// read returns all writes so far, and when the last of a component of the control plane was.
func (a *audit) read() (Writes, time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.Open(a.log())
	if err != nil {
		return nil, time.Time{}, errors.Wrap(err, "cannot open the audit log")
	}
	defer f.Close() // It is only read.
	if _, err := f.Seek(a.offset, 0); err != nil {
		return nil, time.Time{}, errors.Wrap(err, "cannot read the audit log")
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break // The rest of the line is not written yet.
		}
		a.offset += int64(len(line))
		if err := a.add(line); err != nil {
			return nil, time.Time{}, err
		}
	}
	out := Writes{}
	for _, program := range slices.Sorted(maps.Keys(a.writes)) {
		out[program] = maps.Clone(a.writes[program])
	}
	return out, a.last, nil
}

// add counts a line of the log.
func (a *audit) add(line []byte) error {
	var e struct {
		UserAgent string    `json:"userAgent"`
		At        time.Time `json:"requestReceivedTimestamp"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return errors.Wrap(err, "cannot decode the audit log")
	}
	program, _, _ := strings.Cut(e.UserAgent, "/")
	if a.writes[program] == nil {
		a.writes[program] = map[string]int{}
	}
	a.writes[program][strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
	if slices.Contains(programs, program) && e.At.After(a.last) {
		a.last = e.At
	}
	return nil
}
