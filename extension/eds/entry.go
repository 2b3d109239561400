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
// streams. The server's lock guards entries; resources never change. Of the entries in use, one goroutine
// writes shares, expected and listed.
type entry struct {
	// name in Envoy's subscription, and list that it stands for, with this tuning. canonical is the list as
	// snapshots name it, and owner the namespace of its target or route.
	name, list, canonical, owner string
	tuning                       ir.Tuning

	// shares from which the resource was made.
	shares []ir.EndpointShare

	// own reports that hooks write the name in this way, and tuned that it has a tuning that a policy sets:
	// expected depends on the policies of the snapshot.
	own, tuned bool

	// expected reports that the last snapshot has a policy with the tuning, and that the list's
	// targets want its transport.
	expected bool

	// listed reports that a snapshot had the list. A list that later snapshots lack, or whose targets
	// want another transport, stays as it was: either no route uses it any more or a newer replica
	// knows better, and an Envoy that still has its routes must not lose its endpoints.
	listed bool

	// resource is nil until there is an answer.
	resource *discovery.Resource

	streams []*stream

	// client is the first client with a subscription, and charged the number of bytes that the entry
	// counts for it.
	client  *account
	charged int

	// patience fires when a name has been unknown for long. Nil if it never was.
	patience *time.Timer
}

// newEntry returns the entry of a name for a snapshot.
func newEntry(name string, s *ir.Snapshot) (*entry, error) {
	if len(name) > maxName {
		return nil, errors.Errorf("a name has %d bytes, more than the limit of %d", len(name), maxName)
	}
	list, tuning, err := listName(name)
	if err != nil {
		return nil, err
	}
	own := tuning.Name(list)
	e := &entry{name: name, list: list, canonical: ir.CanonicalList(list), owner: ir.ListNamespace(list), tuning: tuning, own: name == own || name == xds.XDSTPName(own), tuned: tuning.FromPolicy()}
	u := e.compare(s)
	if u.stale {
		if err := u.build(); err != nil {
			return nil, err
		}
	}
	u.apply()
	return e, nil
}

// doubtful reports whether a client could have invented the name: no snapshot has the list or the
// tuning, or the name is one of many for the list. The number of other names is limited by the
// lists and policies of the snapshot.
func (e *entry) doubtful() bool {
	return !e.listed || !e.own || !e.expected
}

// size returns the approximate number of bytes of the entry.
func (e *entry) size() int {
	return entrySize + 2*len(e.name) + proto.Size(e.resource)
}

// An update is what a snapshot changes of an entry.
type update struct {
	entry *entry

	expected bool

	// shares from which a new resource is to be made, if stale is set.
	stale    bool
	shares   []ir.EndpointShare
	resource *discovery.Resource
}

// compare returns what a snapshot changes of the entry, without the resource. It is cheap, because
// snapshots share unchanged parts. It reads only what the goroutine that applies updates writes, and
// so needs no lock there.
func (e *entry) compare(s *ir.Snapshot) update {
	shares, ok := s.Shares(e.list)
	fits := !slices.ContainsFunc(shares, func(sh ir.EndpointShare) bool { return sh.Transport != e.tuning.Transport })
	u := update{entry: e, expected: s.Settings().HasTuning(e.tuning) && fits}
	// An Envoy that comes from another replica keeps its endpoints until this one has looked up all
	// hosts once.
	pending := !e.listed && slices.ContainsFunc(shares, func(sh ir.EndpointShare) bool { return sh.Pending })
	if !ok || !fits || pending || e.listed && slices.EqualFunc(e.shares, shares, sameShare) {
		return u
	}
	u.stale, u.shares = true, shares
	return u
}

// build makes the resource of a stale entry, which may take a millisecond or more. It needs no lock.
func (u *update) build() error {
	var err error
	u.resource, err = newResource(u.entry.name, u.shares, u.entry.tuning)
	return err
}

// apply changes the entry, and reports whether its bytes changed. The caller holds the lock.
func (u *update) apply() bool {
	e := u.entry
	e.expected = u.expected
	if u.resource == nil {
		return false
	}
	e.shares, e.listed = u.shares, true
	if e.resource != nil && e.resource.GetVersion() == u.resource.GetVersion() {
		return false
	}
	e.resource = u.resource
	return true
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
