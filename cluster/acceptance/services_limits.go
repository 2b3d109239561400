// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Limits of the data that the product writes into a service: its API limits comments, and
// internal/registry (limits.go) the annotations of a service that clusters share.
const (
	commentNeeded    = 256
	annotationNeeded = 4 << 10
	annotationsWrote = 8
)

// limit finds the largest n that fits, by doubling from 1 to at most bound and then by halving the
// gap. It returns bound if all fit.
func limit(bound int, fits func(n int) (bool, error)) (int, error) {
	low := 0
	var high int
	for n := 1; ; n = min(n*2, bound) {
		ok, err := fits(n)
		if err != nil {
			return low, err
		}
		if !ok {
			high = n
			break
		}
		low = n
		if n == bound {
			return bound, nil
		}
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, err := fits(mid)
		if err != nil {
			return low, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// grow finds a limit of a service. change changes a service, whose size grows with n.
func (t *turn) grow(ctx context.Context, suffix string, needed, bound int, change func(s *tailscale.Service, n int)) error {
	s, err := t.made(ctx, t.service(suffix))
	if err != nil {
		return err
	}
	var refusals []string
	n, err := limit(bound, func(n int) (bool, error) {
		next := s
		change(&next, n)
		r, err := t.put(ctx, next)
		if err != nil {
			return false, err
		}
		if r.status >= 500 || (!r.ok() && refusal(r.status, r.message()) != nil) {
			return false, errors.Errorf("%d: the API answered %d: %s", n, r.status, t.secret.text(r.message()))
		}
		if !r.ok() {
			refusals = append(refusals, fmt.Sprintf("%d is refused with %d: %s", n, r.status, r.message()))
			return false, nil
		}
		stored, err := t.fetch(ctx, s.Name)
		if err != nil {
			return false, err
		}
		if diff := differs(next, stored); diff != "" {
			refusals = append(refusals, fmt.Sprintf("%d is accepted but not stored: %s", n, diff))
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	t.observe("limit", n)
	if n == bound {
		t.note("no limit up to %d", bound)
	} else {
		t.note("the limit is %d; %s", n, refusals[len(refusals)-1])
	}
	if n < needed {
		return errors.Errorf("the limit is %d, the product writes up to %d", n, needed)
	}
	return nil
}

func commentSize(ctx context.Context, t *turn) error {
	return t.grow(ctx, "comment", commentNeeded, 64<<10, func(s *tailscale.Service, n int) { s.Comment = strings.Repeat("c", n) })
}

func annotationSize(ctx context.Context, t *turn) error {
	return t.grow(ctx, "annotation", annotationNeeded, 256<<10, func(s *tailscale.Service, n int) {
		s.Annotations = map[string]string{"example.com/long": strings.Repeat("a", n)}
	})
}

func annotationNumber(ctx context.Context, t *turn) error {
	return t.grow(ctx, "annotations", annotationsWrote, 256, func(s *tailscale.Service, n int) {
		s.Annotations = make(map[string]string, n)
		for i := range n {
			s.Annotations[fmt.Sprintf("example.com/a%d", i)] = "value"
		}
	})
}
