// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// versionLength is how many characters a version has.
const versionLength = 16

// An entry is an endpoint list that some stream asks for. It is marshalled once for
// all of them. Entries are guarded by their server's lock; resources never change.
type entry struct {
	// name as Envoy asks for it, and list that it stands for, tuned so.
	name, list string
	tuning     ir.Tuning

	// shares that the resource was made of.
	shares []ir.EndpointShare

	// own reports that the name is the one that hooks give the list where nothing changes
	// it.
	own bool

	// known reports that a snapshot had the list. One that is gone from later
	// snapshots is kept as it was: nobody routes to it any more, or a newer replica
	// knows better, and an Envoy that has not heard yet must not lose its endpoints.
	known bool

	// resource is nil while nothing can be said.
	resource *discovery.Resource

	streams []*stream

	// by is who asked first, and charged what it is charged for the entry.
	by      *taker
	charged int

	// patience ends when a name has been unknown for long. Nil if it never was.
	patience *time.Timer
}

// doubtful reports whether a client could have made the name up: no snapshot has the
// list, or the name is one of many that stand for it. Of others there are no more than
// the snapshot has lists.
func (e *entry) doubtful() bool {
	return !e.known || !e.own
}

// size is about how many bytes the entry takes.
func (e *entry) size() int {
	return entrySize + 2*len(e.name) + proto.Size(e.resource)
}

// refresh brings the entry up to date, and reports whether its bytes changed.
func (e *entry) refresh(s *ir.Snapshot) (bool, error) {
	shares, known := s.Shares(e.list)
	if !known || e.known && slices.EqualFunc(e.shares, shares, sameShare) {
		return false, nil
	}
	r, err := newResource(e.name, shares, e.tuning)
	if err != nil {
		return false, err
	}
	e.shares, e.known = shares, true
	if e.resource != nil && e.resource.GetVersion() == r.GetVersion() {
		return false, nil
	}
	e.resource = r
	return true, nil
}

// sameShare is cheap: snapshots share what did not change. A false no only costs the
// making of the same bytes.
func sameShare(a, b ir.EndpointShare) bool {
	if a.Weight != b.Weight || a.HealthThreshold != b.HealthThreshold || len(a.Localities) != len(b.Localities) {
		return false
	}
	return len(a.Localities) == 0 || &a.Localities[0] == &b.Localities[0]
}

// newResource is pure. The version is a hash of the bytes, so it is the same in
// every replica.
func newResource(name string, shares []ir.EndpointShare, t ir.Tuning) (*discovery.Resource, error) {
	ls, threshold := xds.Join(shares)
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(xds.Assignment(name, ls, threshold, t))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot marshal endpoints of %q", name)
	}
	sum := sha256.Sum256(b)
	return &discovery.Resource{
		Name:     name,
		Version:  hex.EncodeToString(sum[:versionLength/2]),
		Resource: &anypb.Any{TypeUrl: TypeURL, Value: b},
	}, nil
}
