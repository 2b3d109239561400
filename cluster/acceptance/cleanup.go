// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A cleaner removes what runs made.
type cleaner struct {
	ledger *ledger
	s      *session
	out    io.Writer

	// cluster removes an object of a cluster; nil without one.
	cluster func(ctx context.Context, o object) error
}

// all removes what the ledger names and what carries the prefix, and returns an
// error that says what is left.
func (c *cleaner) all(ctx context.Context, prefix string) error {
	errs := []error{c.named(ctx, c.ledger.left())}
	for _, k := range kinds() {
		errs = append(errs, c.found(ctx, k, prefix))
	}
	return errors.Join(errs...)
}

// named removes objects of the ledger, those of one kind after another. One that
// cannot be removed does not keep the others.
func (c *cleaner) named(ctx context.Context, left []entry) error {
	var errs []error
	for _, k := range append([]kind{{name: kindCluster, remove: c.removeInCluster}}, kinds()...) {
		for _, e := range left {
			if e.Kind != k.name {
				continue
			}
			if err := k.remove(ctx, c.s, object{e.Kind, e.Name, e.ID}); err != nil {
				errs = append(errs, errors.Wrapf(err, "cannot remove %s %s", e.Kind, e.Name))
				continue
			}
			errs = append(errs, c.ledger.gone(e.Seq))
		}
	}
	return errors.Join(errs...)
}

func (c *cleaner) removeInCluster(ctx context.Context, _ *session, o object) error {
	if c.cluster == nil {
		return errors.New("--kubeconfig must name the cluster")
	}
	return c.cluster(ctx, o)
}

// found removes objects of a kind that carry the prefix and that the ledger does not
// know: a lost reply, or a lost ledger.
func (c *cleaner) found(ctx context.Context, k kind, prefix string) error {
	if k.find == nil || prefix == "" {
		return nil
	}
	all, err := k.find(ctx, c.s, prefix)
	var refused *statusError
	if errors.As(err, &refused) && (refused.status == http.StatusForbidden || refused.status == http.StatusPaymentRequired || refused.status == http.StatusNotFound) {
		// A credential that may not read them has not made any.
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot look for objects of kind %s", k.name)
	}
	var errs []error
	for _, o := range all {
		say(c.out, "  %s %s is not in the ledger but carries the prefix: removing it\n", o.kind, o.name)
		errs = append(errs, k.remove(ctx, c.s, o))
	}
	return errors.Join(errs...)
}

// taken returns the objects that carry a prefix before a run has made any.
func taken(ctx context.Context, s *session, prefix string) ([]string, error) {
	var out []string
	for _, k := range kinds() {
		if k.find == nil {
			continue
		}
		all, err := k.find(ctx, s, prefix)
		var refused *statusError
		if errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			out = append(out, fmt.Sprintf("%s %s", o.kind, o.name))
		}
	}
	return out, nil
}
