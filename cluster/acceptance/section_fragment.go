// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// ownerOf returns the owner in the marks of the entries that a run adds to the policy file.
func ownerOf(prefix string) string { return "acceptance/" + prefix + "/fragment" }

// policyFragment merges an entry as a PolicyFragment does: the approvers of the hosts of a service
// that only this run could have, so that the entry permits nothing to anybody.
func policyFragment(ctx context.Context, t *turn) error {
	original, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	c, err := t.login(t.cred)
	if err != nil {
		return err
	}
	owner := ownerOf(t.run.prefix)
	entries := []policyfile.Entry{{
		Section: "autoApprovers.services", Key: "svc:" + t.name("fragment"), Value: mustJSON([]string{t.run.opts.Tag}),
	}}
	seq, err := t.run.ledger.intend(t.owner(), kindFragment, owner, "")
	if err != nil {
		return err
	}
	warnings, err := c.PolicyFile().EditPolicyFile(ctx, func(text string) (string, error) {
		out, conflicts, err := policyfile.Merge([]byte(text), owner, entries, policyfile.Options{})
		if err == nil && len(conflicts) > 0 {
			err = errors.Errorf("the policy file has such an entry: %s", conflicts[0].String())
		}
		return string(out), err
	})
	if err != nil {
		return errors.Wrap(err, "the product cannot merge a fragment")
	}
	t.observe("warnings", len(warnings) > 0)
	merged, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	if n, err := policyfile.Owned([]byte(merged), owner); err != nil || n != len(entries) {
		return errors.Errorf("the policy file has %d entries of the fragment, want %d: %v", n, len(entries), err)
	}
	if err := removeFragment(ctx, t.session, object{kindFragment, owner, ""}); err != nil {
		return err
	}
	restored, _, err := t.policy(ctx)
	if err != nil {
		return err
	}
	if n, err := policyfile.Owned([]byte(restored), owner); err != nil || n != 0 {
		return errors.Errorf("the policy file still has %d entries of the fragment: %v", n, err)
	}
	t.observe("the text is as before to the byte", restored == original)
	return t.run.ledger.gone(seq)
}

func findFragments(ctx context.Context, s *session, prefix string) ([]object, error) {
	p, err := s.product.PolicyFile().PolicyFile(ctx, tailscale.Current)
	if err != nil {
		return nil, err
	}
	owners, err := policyfile.Owners([]byte(p.Text))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the policy file")
	}
	var out []object
	for _, o := range sortedKeys(owners) {
		if name, ok := strings.CutPrefix(o, "acceptance/"); ok && mine(name, prefix) {
			out = append(out, object{kindFragment, o, ""})
		}
	}
	return out, nil
}

// removeFragment removes the owner's entries, and nothing else.
func removeFragment(ctx context.Context, s *session, o object) error {
	_, err := s.product.PolicyFile().EditPolicyFile(ctx, func(text string) (string, error) {
		out, _, err := policyfile.Merge([]byte(text), o.name, nil, policyfile.Options{})
		return string(out), err
	})
	return err
}
