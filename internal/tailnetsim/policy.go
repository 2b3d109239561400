// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// policy is the part of a policy file that the simulator acts on.
type policy struct {
	raw string
	// unsynced are groups that the file may name though it has them not.
	unsynced  []string
	TagOwners map[string][]string `json:"tagOwners"`
	Grants    []rule              `json:"grants"`
	ACLs      []rule              `json:"acls"`

	AutoApprovers struct {
		Services map[string][]string `json:"services"`
		Routes   map[string][]string `json:"routes"`
		ExitNode []string            `json:"exitNode"`
	} `json:"autoApprovers"`
	Groups map[string][]string `json:"groups"`
	Hosts  map[string]string   `json:"hosts"`
	Tests  []policyTest        `json:"tests"`
}

// A rule is a grant, or with Action an ACL, whose destinations carry ports.
type rule struct {
	Action string   `json:"action"`
	Src    []string `json:"src"`
	Dst    []string `json:"dst"`
	IP     []string `json:"ip"`
	Proto  string   `json:"proto"`
}

// policySections are the top-level sections of a policy file as documented.
var policySections = []string{
	"acls", "grants", "groups", "hosts", "tagOwners", "autoApprovers", "ssh", "sshTests", "tests", "nodeAttrs",
	"postures", "defaultSrcPosture", "derpMap", "disableIPv4", "OneCGNATRoute", "randomizeClientPort", "ipsets", "extraDNSRecords",
	"attrConfig", "networkFlowLogging",
}

// parsePolicy parses HuJSON and refuses the same errors as the API. Rules may name the groups
// of an unsynced directory: warnings returns them.
func parsePolicy(raw string, unsynced []string) (*policy, error) {
	std, err := hujson.Standardize([]byte(raw))
	if err != nil {
		return nil, err
	}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(std, &sections); err != nil {
		return nil, errors.Wrap(err, "policy file is not an object")
	}
	var unknown []string
	for k := range sections {
		if !slices.ContainsFunc(policySections, func(s string) bool { return strings.EqualFold(s, k) }) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, errors.Errorf("unknown section %q", unknown[0])
	}
	p := &policy{raw: raw, unsynced: unsynced}
	if err := json.Unmarshal(std, p); err != nil {
		return nil, errors.Wrap(err, "cannot decode policy file")
	}
	return p, p.validate()
}

func (p *policy) validate() error {
	var tags []string
	for t, owners := range p.TagOwners {
		if !strings.HasPrefix(t, "tag:") || len(t) == len("tag:") {
			return errors.Errorf("tagOwners: %q is not a tag", t)
		}
		tags = append(tags, owners...)
	}
	for k, hosts := range p.AutoApprovers.Services {
		if !strings.HasPrefix(k, "svc:") {
			tags = append(tags, k)
			if !strings.HasPrefix(k, "tag:") {
				return errors.Errorf("autoApprovers: %q is neither a service nor a tag", k)
			}
		}
		tags = append(tags, hosts...)
	}
	for _, routers := range p.AutoApprovers.Routes {
		tags = append(tags, routers...)
	}
	tags = append(tags, p.AutoApprovers.ExitNode...)
	for _, t := range p.Tests {
		if len(t.Accept)+len(t.Allow)+len(t.Deny) == 0 {
			return errors.Errorf("test of %q has neither accept nor deny", t.Src+t.User)
		}
		tags = append(tags, t.Src, t.User)
	}
	for _, r := range slices.Concat(p.Grants, p.ACLs) {
		if len(r.Src) == 0 || len(r.Dst) == 0 {
			return errors.New("a rule has no src or no dst")
		}
		for _, sel := range slices.Concat(r.Src, r.Dst) {
			if g, ok := strings.CutPrefix(sel, "group:"); ok {
				g, _, _ = strings.Cut(g, ":")
				if _, ok := p.Groups["group:"+g]; !ok && !slices.Contains(p.unsynced, "group:"+g) {
					return errors.Errorf("group not found: %q", "group:"+g)
				}
			}
		}
		tags = append(tags, r.Src...)
		for _, d := range r.Dst {
			if t, ok := strings.CutPrefix(d, "tag:"); ok {
				t, _, _ = strings.Cut(t, ":")
				tags = append(tags, "tag:"+t)
			}
		}
	}
	slices.Sort(tags)
	for _, t := range tags {
		if _, ok := p.TagOwners[t]; strings.HasPrefix(t, "tag:") && !ok {
			return errors.Errorf("tag not found: %q", t)
		}
	}
	return nil
}

// A policyWarning is the API's warning about a rule without the intended effect.
type policyWarning struct {
	User     string   `json:"user"`
	Warnings []string `json:"warnings"`
}

// warnings returns one of each unsynced group that the file names, with the words of
// the OpenAPI document (paths./tailnet/{tailnet}/acl/validate, example
// validateSCIMGroupsNotSynced).
func (p *policy) warnings() []policyWarning {
	var out []policyWarning
	for _, g := range slices.Sorted(slices.Values(p.unsynced)) {
		if _, ok := p.Groups[g]; ok || !p.names(g) {
			continue
		}
		out = append(out, policyWarning{User: g, Warnings: []string{"group is not syncing from SCIM and will be ignored by rules in the policy file"}})
	}
	return out
}

// names reports whether a rule has a group as source or destination.
func (p *policy) names(group string) bool {
	for _, r := range slices.Concat(p.Grants, p.ACLs) {
		if slices.ContainsFunc(slices.Concat(r.Src, r.Dst), func(sel string) bool {
			return sel == group || strings.HasPrefix(sel, group+":")
		}) {
			return true
		}
	}
	return false
}

// owns reports whether a credential with tags may give out tag t: its own, or one
// that one of its tags owns, directly or through other tags.
func (p *policy) owns(tags []string, t string) bool {
	seen := map[string]bool{}
	var walk func(t string) bool
	walk = func(t string) bool {
		owners, ok := p.TagOwners[t]
		if !ok || seen[t] {
			return false
		}
		seen[t] = true
		return slices.Contains(tags, t) || slices.ContainsFunc(owners, walk)
	}
	return walk(t)
}

// autoApproves reports whether a host with hostTags may serve svc without approval.
func (p *policy) autoApproves(svc *service, hostTags []string) bool {
	for _, k := range append([]string{svc.Name}, svc.Tags...) {
		for _, t := range p.AutoApprovers.Services[k] {
			if slices.Contains(hostTags, t) {
				return true
			}
		}
	}
	return false
}

// etag is as in the API: the quoted hash of the file.
func (p *policy) etag() string {
	h := sha256.Sum256([]byte(p.raw))
	return `"` + hex.EncodeToString(h[:]) + `"`
}

// json is the policy file without comments.
func (p *policy) json() ([]byte, error) {
	std, err := hujson.Standardize([]byte(p.raw))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, std, "", "\t"); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
