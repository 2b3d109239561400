// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"time"
)

// listOf makes a call whose response has a list in a field. It reads a missing field as an empty
// list, because the published API does not promise that empty lists are sent.
func listOf[T any](ctx context.Context, c *core, r request, field string) ([]T, time.Time, error) {
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

// add adds a new item to the list. No other caller knows its key yet.
func (l *list[T]) add(key string, item T) error {
	return l.write(key, func() (fold[T], error) { return replaced(item), nil })
}

// createFailed returns the error of a call that creates an item. If the API may have created the
// item, the list becomes invalid.
func (l *list[T]) createFailed(err error) error {
	if !hadNoEffect(err) {
		l.expire()
	}
	return err
}
