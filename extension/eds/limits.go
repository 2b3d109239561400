// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxName is how many bytes a name has at most. The longest of ours are below 1000:
	// a kind, a namespace and a name of 253 each, and zones.
	maxName = 4 << 10

	// entrySize is about how many bytes an entry and a subscription of it take, beside
	// name and resource.
	entrySize = 512
)

// errLimited is in the chain of each error that says that there is too much of something.
var errLimited = errors.New("limit reached")

// Limits of what clients may take of a server, together. Those of one address may have
// half of it. An Envoy has a stream for each target, or one stream for all.
type Limits struct {
	// Streams that may be open. Zero means 32,768, each of which takes some 10 kB.
	Streams int

	// Subscriptions of all streams. Zero means 1,048,576, each of which takes some 100
	// bytes.
	Subscriptions int

	// Doubtful is how many bytes lists may take that a client could have made up: those
	// that no snapshot has, and those by another name than a snapshot has. Zero means
	// 64 MiB. Names that a replica does not know yet, because another one is ahead of
	// it, are among them, and those of lists that a BackendTrafficPolicy changes.
	Doubtful int
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Streams:       cmp.Or(l.Streams, 32<<10),
		Subscriptions: cmp.Or(l.Subscriptions, 1<<20),
		Doubtful:      cmp.Or(l.Doubtful, 64<<20),
	}
}

// A taker is all connections of an address, and what they take.
type taker struct {
	address string

	streams, subscriptions, doubtful int
}

// A usage counts what is taken. It is guarded by its server's lock.
type usage struct {
	limits Limits
	all    taker
	takers map[string]*taker
}

func newUsage(l Limits) *usage {
	return &usage{limits: l.orDefaults(), takers: map[string]*taker{}}
}

// check that n more of something may be taken.
func check(what string, of, all, n, limit int) error {
	switch {
	case all+n > limit:
		return errors.Wrapf(errLimited, "all Envoys have %d of %d %s", all, limit, what)
	case of+n > limit/2:
		return errors.Wrapf(errLimited, "this Envoy has %d of %d %s", of, limit/2, what)
	}
	return nil
}

// open a stream of a client.
func (u *usage) open(address string) (*taker, error) {
	c := u.takers[address]
	if c == nil {
		c = &taker{address: address}
	}
	if err := check("streams", c.streams, u.all.streams, 1, u.limits.Streams); err != nil {
		return nil, err
	}
	u.takers[address] = c
	c.streams++
	u.all.streams++
	return c, nil
}

func (u *usage) close(c *taker) {
	c.streams--
	u.all.streams--
	u.tidy(c)
}

// tidy forgets a client that has nothing.
func (u *usage) tidy(c *taker) {
	if c.streams == 0 && c.doubtful == 0 && u.takers[c.address] == c {
		delete(u.takers, c.address)
	}
}

// subscribe a stream to one more entry.
func (u *usage) subscribe(st *stream) error {
	if err := check("subscriptions", st.taker.subscriptions, u.all.subscriptions, 1, u.limits.Subscriptions); err != nil {
		return err
	}
	st.taker.subscriptions++
	u.all.subscriptions++
	return nil
}

func (u *usage) unsubscribe(st *stream) {
	st.taker.subscriptions--
	u.all.subscriptions--
}

// admit a new entry, if there is room for it.
func (u *usage) admit(e *entry) error {
	if e.doubtful() {
		if err := check("bytes of lists that no route asks for", e.by.doubtful, u.all.doubtful, e.size(), u.limits.Doubtful); err != nil {
			return err
		}
	}
	u.charge(e)
	return nil
}

// charge the client that asked for an entry first, as the entry is now.
func (u *usage) charge(e *entry) {
	size := 0
	if e.doubtful() {
		size = e.size()
	}
	e.by.doubtful += size - e.charged
	u.all.doubtful += size - e.charged
	e.charged = size
}

// release an entry that is forgotten.
func (u *usage) release(e *entry) {
	e.by.doubtful -= e.charged
	u.all.doubtful -= e.charged
	e.charged = 0
	u.tidy(e.by)
}
