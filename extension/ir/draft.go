// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

// A Draft is the next Snapshot while it is built.
type Draft struct {
	// Revision, Digest and PolicyRevision are those of the Snapshot.
	Revision, Digest, PolicyRevision uint64

	Tables

	token   *token
	changed bool
}

// A token distinguishes Drafts. It is not empty, because pointers to empty values may be equal.
type token struct{ _ byte }

// Edit returns a Draft that begins as the Snapshot. The Snapshot does not change.
func (s *Snapshot) Edit() *Draft {
	return &Draft{Revision: s.Revision, Digest: s.Digest, PolicyRevision: s.PolicyRevision, Tables: s.tables, token: &token{}}
}

// Changed reports whether a Table of the Draft was written to.
func (d *Draft) Changed() bool { return d.changed }

// Finish returns the Snapshot that the Draft has become. The Draft must not be used
// afterwards.
func (d *Draft) Finish() *Snapshot {
	return &Snapshot{Revision: d.Revision, Digest: d.Digest, PolicyRevision: d.PolicyRevision, tables: d.Tables}
}
