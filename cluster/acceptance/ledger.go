// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ledgerFile is the ledger's name in the folder of a run.
const ledgerFile = "ledger.jsonl"

// Kinds of objects that a run creates.
const (
	kindService   = "service"   // Name: svc:PREFIX-...
	kindKey       = "key"       // Name: its description without a mark of the product, PREFIX ...
	kindDevice    = "device"    // Name: its hostname, PREFIX-...
	kindSplitDNS  = "split-dns" // Name: the domain, PREFIX...
	kindWebhook   = "webhook"   // Name: its URL, https://PREFIX.example.com/...
	kindAttribute = "attribute" // Name: the key; ID: the device.
	kindPolicy    = "policy"    // Name: the mark in the policy file.
	kindFragment  = "fragment"  // Name: the owner of entries of the policy file, acceptance/PREFIX/...
	kindSetting   = "setting"   // Name: the setting; ID: its value before.
	kindDir       = "dir"       // Name: a temporary folder of this machine.
	kindCluster   = "cluster"   // Name: that of clusterName.
)

// States of an object.
const (
	opRun    = "run"    // A run began, or learned its tailnet's DNS name; Name is its prefix.
	opIntend = "intend" // The object is about to be created.
	opMade   = "made"   // It was created, with this ID.
	opGone   = "gone"   // It was removed, or never created.
)

// An entry is a line of the ledger.
type entry struct {
	At   time.Time `json:"at"`
	Op   string    `json:"op"`
	Seq  int       `json:"seq"`
	Kind string    `json:"kind,omitempty"`
	Name string    `json:"name,omitempty"`
	ID   string    `json:"id,omitempty"`
	Row  string    `json:"row,omitempty"`

	// place of a run.
	place
}

// A ledger records the objects of a run before the run creates them: each line is on disk before
// the request to the API.
type ledger struct {
	mu      sync.Mutex
	file    *os.File
	entries []entry
	seq     int
}

// openLedger opens the ledger of a folder, or creates one.
func openLedger(dir string) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "cannot create --out")
	}
	path := filepath.Join(dir, ledgerFile)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Wrap(err, "cannot read ledger")
	}
	l := &ledger{}
	if l.entries, err = parseLedger(old); err != nil {
		return nil, err
	}
	for _, e := range l.entries {
		l.seq = max(l.seq, e.Seq)
	}
	if l.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, errors.Wrap(err, "cannot open ledger")
	}
	return l, errors.Wrap(l.endLine(old), "cannot write ledger")
}

// endLine completes the last line, which a crash may have truncated. It removes a line that cannot
// be parsed, because later lines would follow it.
func (l *ledger) endLine(old []byte) error {
	begin := bytes.LastIndexByte(old, '\n') + 1
	last := old[begin:]
	switch {
	case len(last) == 0:
		return nil
	case json.Valid(last):
		_, err := l.file.WriteString("\n")
		return err
	}
	return l.file.Truncate(int64(begin))
}

// parseLedger parses lines. It ignores a last line that a crash has truncated: its object does not
// exist, because the whole line is written before the object is created.
func parseLedger(b []byte) ([]entry, error) {
	var out []entry
	lines := bytes.Split(b, []byte("\n"))
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if i == len(lines)-1 {
				break
			}
			return nil, errors.Wrapf(err, "cannot read line %d of the ledger", i+1)
		}
		out = append(out, e)
	}
	return out, nil
}

func (l *ledger) write(e entry) error {
	e.At = time.Now().UTC()
	b, err := json.Marshal(e)
	if err != nil {
		return errors.Wrap(err, "cannot encode ledger")
	}
	if _, err := l.file.Write(append(b, '\n')); err != nil {
		return errors.Wrap(err, "cannot write ledger")
	}
	l.entries = append(l.entries, e)
	return errors.Wrap(l.file.Sync(), "cannot write ledger to the disk")
}

// begin records a run with its place. A later call with the same prefix updates the place.
func (l *ledger) begin(prefix string, p place) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(entry{Op: opRun, Name: prefix, place: p})
}

// located records the DNS name of the last run's tailnet, unless the ledger has it.
func (l *ledger) located(domain string) error {
	last := l.lastRun()
	if domain == "" || last.Domain == domain {
		return nil
	}
	last.Domain = domain
	return l.begin(last.Name, last.place)
}

// intend records that an object is about to be created, and returns its number in the ledger.
func (l *ledger) intend(row, kind, name, id string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return l.seq, l.write(entry{Op: opIntend, Seq: l.seq, Kind: kind, Name: name, ID: id, Row: row})
}

// made records the ID of a created object.
func (l *ledger) made(seq int, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(entry{Op: opMade, Seq: seq, ID: id})
}

// gone records that an object no longer exists.
func (l *ledger) gone(seq int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(entry{Op: opGone, Seq: seq})
}

// left returns the objects that may exist, the newest first, with their IDs.
func (l *ledger) left() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return leftIn(l.entries)
}

// lastRun returns the entry of the last run, or an empty one.
func (l *ledger) lastRun() entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if e.Op == opRun {
			return e
		}
	}
	return entry{}
}

func (l *ledger) close() error { return errors.Wrap(l.file.Close(), "cannot close ledger") }

// leftIn returns the objects of entries that are not gone, the newest first.
func leftIn(entries []entry) []entry {
	remaining := map[int]entry{}
	for _, e := range entries {
		switch e.Op {
		case opIntend:
			remaining[e.Seq] = e
		case opMade:
			if intended, ok := remaining[e.Seq]; ok {
				intended.ID = e.ID
				remaining[e.Seq] = intended
			}
		case opGone:
			delete(remaining, e.Seq)
		}
	}
	out := make([]entry, 0, len(remaining))
	for _, e := range remaining {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return b.Seq - a.Seq })
	return out
}
