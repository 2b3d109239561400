// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxName is the greatest length of a name in bytes. The extension's longest names have less
	// than 1000: a kind, a namespace and a name of 253 each, and zones.
	maxName = 4 << 10

	// entrySize is the approximate number of bytes of an entry and one subscription, without name
	// and resource.
	entrySize = 512
)

// Limits of the resources of all clients together. One address may have half of each. An Envoy has
// a stream for each target, or one stream for all.
type Limits struct {
	// Streams that may be open. Zero means 32,768, each of which takes some 10 kB.
	Streams int

	// Subscriptions of all streams. Zero means 1,048,576, each of which takes some 100 bytes.
	Subscriptions int

	// Doubtful is the number of bytes of lists that a client could have invented: lists or tunings
	// that no snapshot has, and other names for lists of the snapshot. Zero means 64 MiB. These
	// include names that this replica does not know yet because another one is ahead of it.
	Doubtful int
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Streams:       cmp.Or(l.Streams, 32<<10),
		Subscriptions: cmp.Or(l.Subscriptions, 1<<20),
		Doubtful:      cmp.Or(l.Doubtful, 64<<20),
	}
}

// An account counts the resources of all connections from an address.
type account struct {
	address string

	streams, subscriptions, doubtful int
}

// A usage counts the resources of all clients. The server's lock guards it.
type usage struct {
	limits   Limits
	all      account
	accounts map[string]*account
}

func newUsage(l Limits) *usage {
	return &usage{limits: l.orDefaults(), accounts: map[string]*account{}}
}

// check returns an error if n more of something exceed the limit.
func check(resource string, own, all, n, limit int) error {
	switch {
	case all+n > limit:
		return errors.Errorf("limit reached: all Envoys have %d of %d %s", all, limit, resource)
	case own+n > limit/2:
		return errors.Errorf("limit reached: this Envoy has %d of %d %s", own, limit/2, resource)
	}
	return nil
}

// open counts a new stream of a client.
func (u *usage) open(address string) (*account, error) {
	c := u.accounts[address]
	if c == nil {
		c = &account{address: address}
	}
	if err := check("streams", c.streams, u.all.streams, 1, u.limits.Streams); err != nil {
		return nil, err
	}
	u.accounts[address] = c
	c.streams++
	u.all.streams++
	return c, nil
}

func (u *usage) close(c *account) {
	c.streams--
	u.all.streams--
	u.tidy(c)
}

// tidy removes an account without streams and bytes.
func (u *usage) tidy(c *account) {
	if c.streams == 0 && c.doubtful == 0 && u.accounts[c.address] == c {
		delete(u.accounts, c.address)
	}
}

// subscribe counts another subscription of a stream.
func (u *usage) subscribe(st *stream) error {
	if err := check("subscriptions", st.account.subscriptions, u.all.subscriptions, 1, u.limits.Subscriptions); err != nil {
		return err
	}
	st.account.subscriptions++
	u.all.subscriptions++
	return nil
}

func (u *usage) unsubscribe(st *stream) {
	st.account.subscriptions--
	u.all.subscriptions--
}

// admit returns an error if a new entry exceeds the limit.
func (u *usage) admit(e *entry) error {
	if e.doubtful() {
		if err := check("bytes of lists that no route uses", e.client.doubtful, u.all.doubtful, e.size(), u.limits.Doubtful); err != nil {
			return err
		}
	}
	u.charge(e)
	return nil
}

// charge charges an entry's current size to its first client.
func (u *usage) charge(e *entry) {
	size := 0
	if e.doubtful() {
		size = e.size()
	}
	e.client.doubtful += size - e.charged
	u.all.doubtful += size - e.charged
	e.charged = size
}

// release returns the bytes of a removed entry.
func (u *usage) release(e *entry) {
	e.client.doubtful -= e.charged
	u.all.doubtful -= e.charged
	e.charged = 0
	u.tidy(e.client)
}
