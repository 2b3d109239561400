// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
)

// Sections of a policy file.
const (
	sectionOwners = "tagOwners"
	sectionGrants = "grants"
	sectionACLs   = "acls"
)

// defaultTag is the tag of proxies in the docs.
const defaultTag = "tag:k8s"

// A rule is a grant, or an entry of acls, whose destinations have ports.
type rule struct {
	Src []string `json:"src"`
	Dst []string `json:"dst"`
	IP  []string `json:"ip,omitempty"`
}

// policy plans the policy file: the tags of proxies have an owner, and people reach them.
func policy(f Facts, o Options) Step {
	t := f.Tailnet
	s := Step{Name: StepPolicy, State: OK}
	const place = "add it to the policy file: https://login.tailscale.com/admin/acls/file"
	if t.Policy.Unknown != "" {
		s.State, s.Summary, s.Next = Yours, "the credential may not read the policy file, which must have this: "+t.Policy.Unknown, place
		if o.MergePolicy {
			s.State, s.Next = Blocked, fmt.Sprintf("add the OAuth scope %s to the credential in %s, or omit --merge-policy", scopePolicy, console)
		}
		s.Content = snippet(needed(o.tags(f), o.owners(t)))
		return s
	}
	lacking, err := lacks(t.Policy.Value, o.tags(f), o.owners(t))
	switch {
	case err != nil:
		s.State, s.Summary, s.Next = Yours, "the policy file cannot be read: "+err.Error(), place
		s.Content = snippet(needed(o.tags(f), o.owners(t)))
	case len(lacking) == 0:
		s.Summary = "the policy file lets the credential assign " + strings.Join(o.tags(f), ", ") + ", and has a grant for it"
	case !o.MergePolicy:
		s.State, s.Summary, s.Next = Yours, "the policy file lacks this", place+", or add --merge-policy"
		s.Content = snippet(lacking)
	default:
		return merge(t, o, lacking)
	}
	if t.Tags == nil && o.CredentialTag != "" {
		s.Summary += " (for a credential with " + o.CredentialTag + "; --credential-tag names another)"
	}
	return s
}

// merge plans the edit of the policy file.
func merge(t *Tailnet, o Options, lacking []policyfile.Entry) Step {
	s := Step{Name: StepPolicy, State: Action, Summary: "add to the policy file", Content: snippet(lacking)}
	if missing := t.missing([]string{scopePolicy}); len(missing) > 0 {
		s.State, s.Next = Blocked, fmt.Sprintf("add the OAuth scope %s to the credential in %s, or omit --merge-policy", scopePolicy, console)
		return s
	}
	// A credential has only tags that the policy file defines.
	if owner := o.CredentialTag; t.Tags == nil && slices.ContainsFunc(lacking, func(e policyfile.Entry) bool { return e.Key == owner }) {
		s.State, s.Summary = Blocked, "the policy file has no "+owner+", so the credential has another tag"
		s.Next = "name the tag of the credential by --credential-tag"
		return s
	}
	text, err := Merge(t.Policy.Value, lacking)
	if err != nil {
		s.State, s.Summary, s.Next = Blocked, err.Error(), "add it by hand, or omit --merge-policy"
		return s
	}
	s.Policy = text
	return s
}

// Merge adds to a policy file what it lacks, and changes nothing else in it.
func Merge(text string, lacking []policyfile.Entry) (string, error) {
	out, conflicts, err := policyfile.Add([]byte(text), lacking)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		return "", errors.Errorf("cannot add to the policy file: %s", conflicts[0])
	}
	return string(out), nil
}

// Lacks returns what a policy file lacks for an installation.
func Lacks(text string, f Facts, o Options) ([]policyfile.Entry, error) {
	return lacks(text, o.tags(f), o.owners(f.Tailnet))
}

func (o Options) tags(f Facts) []string {
	switch r := f.Release.Value; {
	case len(o.Tags) > 0:
		return o.Tags
	case r != nil && len(r.Tags) > 0:
		return r.Tags
	}
	return []string{defaultTag}
}

// owners returns the tags of the credential.
func (o Options) owners(t *Tailnet) []string {
	if t.Tags != nil {
		return t.Tags
	}
	return []string{o.CredentialTag}
}

// lacks returns the entries to add to a policy file.
func lacks(text string, tags, owners []string) ([]policyfile.Entry, error) {
	covered, err := coverage(text)
	if err != nil {
		return nil, err
	}
	entries, err := policyfile.Read([]byte(text), sectionOwners)
	if err != nil {
		return nil, err
	}
	existing := map[string][]string{}
	for _, e := range entries {
		var list []string
		// A value of another type is a conflict for the merge.
		_ = json.Unmarshal(e.Value, &list)
		existing[e.Key] = append([]string{}, list...)
	}
	var out []policyfile.Entry
	var unreachable []string
	for _, tag := range tags {
		list, defined := existing[tag]
		own := slices.ContainsFunc(owners, func(owner string) bool { return owner == tag || slices.Contains(list, owner) })
		if !defined || !own {
			if !slices.Contains(owners, tag) {
				list = append(list, owners[0])
			}
			out = append(out, owning(tag, list))
		}
		if !covered(tag) {
			unreachable = append(unreachable, tag)
		}
	}
	if len(owners) > 0 && len(out) > 0 {
		if _, ok := existing[owners[0]]; !ok && !slices.Contains(tags, owners[0]) {
			out = append([]policyfile.Entry{owning(owners[0], []string{})}, out...)
		}
	}
	if len(unreachable) > 0 {
		out = append(out, granting(unreachable))
	}
	return out, nil
}

// needed is lacks for an empty policy file, with a grant.
func needed(tags, owners []string) []policyfile.Entry {
	out, err := lacks("{}", tags, owners)
	if err != nil {
		return nil
	}
	return append(out, granting(tags))
}

func owning(tag string, owners []string) policyfile.Entry {
	b, err := json.Marshal(owners)
	if err != nil {
		b = []byte("[]")
	}
	return policyfile.Entry{Section: sectionOwners, Key: tag, Value: b}
}

func granting(tags []string) policyfile.Entry {
	b, err := json.Marshal(rule{Src: []string{"autogroup:member"}, Dst: tags, IP: []string{"tcp:80", "tcp:443"}})
	if err != nil {
		b = []byte("{}")
	}
	return policyfile.Entry{Section: sectionGrants, Value: b}
}

// coverage returns whether a rule of the policy file leads to a tag. Without both sections Tailscale allows all,
// which the first rule would end.
func coverage(text string) (func(tag string) bool, error) {
	var targets []string
	rules := false
	for _, section := range []string{sectionGrants, sectionACLs} {
		ok, err := policyfile.Has([]byte(text), section)
		if err != nil {
			return nil, err
		}
		rules = rules || ok
		entries, err := policyfile.Read([]byte(text), section)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			r := rule{}
			if err := json.Unmarshal(e.Value, &r); err != nil {
				return nil, errors.Wrapf(err, "cannot read section %s", section)
			}
			for _, target := range r.Dst {
				// The ports of an entry of acls follow the last colon.
				if n := strings.LastIndex(target, ":"); section == sectionACLs && n >= 0 {
					target = target[:n]
				}
				targets = append(targets, target)
			}
		}
	}
	return func(tag string) bool {
		return !rules || slices.Contains(targets, tag) || slices.Contains(targets, "*")
	}, nil
}

// snippet returns entries as a part of a policy file.
func snippet(entries []policyfile.Entry) string {
	text, err := Merge("{}", entries)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(text, "\t", "  ") + "\n"
}
