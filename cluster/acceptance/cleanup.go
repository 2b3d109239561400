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

// A cleaner removes the objects of runs.
type cleaner struct {
	ledger *ledger
	s      *session

	// cluster removes an object of a cluster; nil without one.
	cluster func(ctx context.Context, o object) error
}

// named removes objects in the ledger, one kind after the other. It continues after an error.
func (c *cleaner) named(ctx context.Context, remaining []entry) error {
	var errs []error
	for _, k := range append([]kind{{name: kindCluster, remove: c.removeInCluster}}, kinds()...) {
		for _, e := range remaining {
			if e.Kind != k.name {
				continue
			}
			if err := c.removeOne(ctx, k, object{e.Kind, e.Name, e.ID}); err != nil {
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

// found returns the objects with a prefix. It skips kinds that the credential may not read, because
// the credential cannot have created any.
func (c *cleaner) found(ctx context.Context, prefix string) ([]object, error) {
	var out []object
	for _, k := range kinds() {
		if k.find == nil {
			continue
		}
		var all []object
		var err error
		patiently(ctx, func() bool {
			all, err = k.find(ctx, c.s, prefix)
			return isLimited(err)
		})
		switch tailscale.ClassOf(err) {
		case tailscale.ClassForbidden, tailscale.ClassPlanRequired, tailscale.ClassNotFound, tailscale.ClassTailnetNotFound:
			continue
		}
		if err != nil {
			return nil, errors.Wrapf(err, "cannot look for objects of kind %s", k.name)
		}
		out = append(out, all...)
	}
	return out, nil
}

// removeOne removes an object. It waits while the API limits its rate.
func (c *cleaner) removeOne(ctx context.Context, k kind, o object) (err error) {
	patiently(ctx, func() bool {
		err = k.remove(ctx, c.s, o)
		return isLimited(err)
	})
	return err
}

// remove removes objects that are not in the ledger.
func (c *cleaner) remove(ctx context.Context, objects []object) error {
	var errs []error
	for _, k := range kinds() {
		for _, o := range objects {
			if o.kind == k.name {
				errs = append(errs, c.removeOne(ctx, k, o))
			}
		}
	}
	return errors.Join(errs...)
}

// listed returns the names of objects, at most three.
func listed(objects []object) string {
	var out []string
	for _, o := range objects[:min(3, len(objects))] {
		out = append(out, o.kind+" "+o.name)
	}
	if n := len(objects) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}
