// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfragment

import (
	"encoding/json"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
)

// entries returns the entries of a fragment.
func entries(p *v1alpha1.PolicyFragmentParameters) ([]policyfile.Entry, error) {
	var out []policyfile.Entry
	lists := []struct {
		section string
		objects []v1alpha1.PolicyObject
	}{
		{"grants", p.Grants}, {"acls", p.ACLs}, {"ssh", p.SSH}, {"nodeAttrs", p.NodeAttrs}, {"tests", p.Tests}, {"sshTests", p.SSHTests},
	}
	for _, l := range lists {
		for _, o := range l.objects {
			out = append(out, policyfile.Entry{Section: l.section, Value: o.Raw})
		}
	}
	tables := []struct {
		section string
		lists   map[string][]string
	}{
		{"tagOwners", p.TagOwners}, {"groups", p.Groups}, {"postures", p.Postures},
	}
	if a := p.AutoApprovers; a != nil {
		tables = append(tables, struct {
			section string
			lists   map[string][]string
		}{"autoApprovers.services", a.Services}, struct {
			section string
			lists   map[string][]string
		}{"autoApprovers.routes", a.Routes})
		for _, v := range a.ExitNode {
			e, err := entry("autoApprovers.exitNode", "", v)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	for _, t := range tables {
		for k, v := range t.lists {
			// The API server may store null for an empty list.
			if v == nil {
				v = []string{}
			}
			e, err := entry(t.section, k, v)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	for k, v := range p.Hosts {
		e, err := entry("hosts", k, v)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func entry(section, key string, value any) (policyfile.Entry, error) {
	b, err := json.Marshal(value)
	return policyfile.Entry{Section: section, Key: key, Value: b}, errors.Wrapf(err, "cannot encode %s", path(section, key))
}

// path returns the path of an entry in messages.
func path(section, key string) string {
	if key == "" {
		return section
	}
	return fmt.Sprintf("%s[%q]", section, key)
}
