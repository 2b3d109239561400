// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A clock is off by between leastOffset and mostOffset, in either direction.
const (
	leastOffset = 2 * time.Minute
	mostOffset  = 10 * time.Minute
)

// offset returns the random offset of a clock.
func (h hand) offset() time.Duration {
	d := (leastOffset + time.Duration(h.Int64N(int64(mostOffset-leastOffset)))).Round(time.Second)
	if h.IntN(2) == 0 {
		return -d
	}
	return d
}

// skewServer has the clock of Tailscale's servers be off for a while.
func (c *chaos) skewServer(ctx context.Context, h hand, s *strike) error {
	offset, length := h.offset(), h.duration()
	s.Target = fmt.Sprintf("Tailscale's servers, by %s, for %s", offset, length.Round(time.Second))
	set := func(ctx context.Context, d time.Duration) error {
		return c.tailnet.send(ctx, http.MethodPatch, "/sim/switches", map[string]string{"clockOffset": d.String()}, nil)
	}
	if err := set(ctx, offset); err != nil {
		return err
	}
	elapsed := elapse(ctx, length)
	cleared := set(context.WithoutCancel(ctx), 0)
	s.Ended = time.Now()
	return errors.Join(elapsed, cleared)
}

// skewRecord changes the time in the record of a cluster, as if its clock had been off.
func (c *chaos) skewRecord(ctx context.Context, h hand, s *strike) error {
	all, err := c.tailnet.api.Services().List(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot list services")
	}
	var records []tailscale.Service
	for _, v := range all {
		if v.Annotations[meta.AnnotationRecord] != "" {
			records = append(records, v)
		}
	}
	if len(records) == 0 {
		return errors.New("the tailnet has no records")
	}
	v, offset := records[h.IntN(len(records))], h.offset()
	s.Target = fmt.Sprintf("the record %s, by %s", v.Name, offset)
	if v.Annotations[meta.AnnotationRecord], err = skew(v.Annotations[meta.AnnotationRecord], offset); err != nil {
		return err
	}
	if err := c.tailnet.api.Services().CreateOrUpdate(ctx, v); err != nil {
		return errors.Wrap(err, "cannot write the record")
	}
	// Provider and functions read records within seconds, and have the time to be misled.
	elapsed := elapse(ctx, h.duration())
	s.Ended = time.Now()
	return elapsed
}

// skew returns a record whose time is off.
func skew(record string, offset time.Duration) (string, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(record), &fields); err != nil {
		return "", errors.Wrap(err, "cannot decode a record")
	}
	updated, err := time.Parse(time.RFC3339, fmt.Sprint(fields["updated"]))
	if err != nil {
		return "", errors.Wrap(err, "cannot parse the time of a record")
	}
	fields["updated"] = updated.Add(offset).Format(time.RFC3339)
	b, err := json.Marshal(fields)
	return string(b), errors.Wrap(err, "cannot encode a record")
}
