// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"time"
)

// listOf makes a call that answers with a list in a field. An object without the
// field is an empty list: the published API does not say that empty lists are sent.
func listOf[T any](ctx context.Context, c *Client, r request, field string) ([]T, time.Time, error) {
	var out map[string]json.RawMessage
	h, err := c.rawJSON(ctx, r, &out)
	if err != nil {
		return nil, time.Time{}, err
	}
	var l []T
	b, ok := out[field]
	if !ok {
		return l, dateOf(h), nil
	}
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

// createFailed returns the error of a call that was to make an item. If the item may
// have been made all the same, the list is worth nothing any more.
func (l *list[T]) createFailed(err error) error {
	if !hadNoEffect(err) {
		l.expire()
	}
	return err
}
