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

// versionLength is the number of characters of a version.
const versionLength = 16

// An entry is an endpoint list with at least one subscription. It is marshalled once for all
// streams. The server's lock guards entries; resources never change.
type entry struct {
	// name in Envoy's subscription, and list that it stands for, with this tuning.
	name, list string
	tuning     ir.Tuning

	// shares from which the resource was made.
	shares []ir.EndpointShare

	// own reports that hooks write the name in this way.
	own bool

	// expected reports that the last snapshot has a policy with the tuning, and that the list's
	// targets want its transport.
	expected bool

	// known reports that a snapshot had the list. A list that later snapshots lack, or whose targets
	// want another transport, stays as it was: either no route uses it any more or a newer replica
	// knows better, and an Envoy that still has its routes must not lose its endpoints.
	known bool

	// resource is nil until there is an answer.
	resource *discovery.Resource

	streams []*stream

	// by is the first client with a subscription, and charged the number of bytes that the entry
	// counts for it.
	by      *account
	charged int

	// patience fires when a name has been unknown for long. Nil if it never was.
	patience *time.Timer
}

// doubtful reports whether a client could have invented the name: no snapshot has the list or the
// tuning, or the name is one of many for the list. The number of other names is limited by the
// lists and policies of the snapshot.
func (e *entry) doubtful() bool {
	return !e.known || !e.own || !e.expected
}

// size returns the approximate number of bytes of the entry.
func (e *entry) size() int {
	return entrySize + 2*len(e.name) + proto.Size(e.resource)
}

// refresh updates the entry, and reports whether its bytes changed.
func (e *entry) refresh(s *ir.Snapshot) (bool, error) {
	shares, known := s.Shares(e.list)
	fits := !slices.ContainsFunc(shares, func(sh ir.EndpointShare) bool { return sh.Transport != e.tuning.Transport })
	e.expected = s.HasTuning(e.tuning) && fits
	// An Envoy that comes from another replica keeps its endpoints until this one has looked up all
	// hosts once.
	pending := !e.known && slices.ContainsFunc(shares, func(sh ir.EndpointShare) bool { return sh.Pending })
	if !known || !fits || pending || e.known && slices.EqualFunc(e.shares, shares, sameShare) {
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

// sameShare compares shares cheaply: snapshots share unchanged parts. A false negative only costs
// building the same bytes again.
func sameShare(a, b ir.EndpointShare) bool {
	if a.Weight != b.Weight || a.HealthThreshold != b.HealthThreshold || len(a.Localities) != len(b.Localities) {
		return false
	}
	return len(a.Localities) == 0 || &a.Localities[0] == &b.Localities[0]
}

// newResource builds a resource. It is pure. The version is a hash of the bytes, so it is the same
// in every replica.
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
