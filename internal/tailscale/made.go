// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"time"
)

// listOf makes a call that answers with a list in a field. An answer without the
// field is an error: it must not be taken for an empty list.
func listOf[T any](ctx context.Context, c *Client, r request, field string) ([]T, time.Time, error) {
	var out map[string]json.RawMessage
	h, err := c.rawJSON(ctx, r, &out)
	if err != nil {
		return nil, time.Time{}, err
	}
	b, ok := out[field]
	if !ok {
		return nil, time.Time{}, &Error{Class: ClassUnavailable, Scope: r.scope, Message: "the answer has no " + field}
	}
	var l []T
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, time.Time{}, classify(err, r.scope, false)
	}
	return l, dateOf(h), nil
}

// add brings the list in line with an item that was just made, and whose key
// nobody knew before.
func (l *list[T]) add(key string, item T) error {
	return l.write(key, func() (fold[T], error) { return replaced(item), nil })
}

// notMade returns the error of a call that was to make an item. If the item may
// have been made all the same, the list is worth nothing any more.
func (l *list[T]) notMade(err error) error {
	if !refused(err) {
		l.expire()
	}
	return err
}
