// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

// policyOwners matches owners in a policy file.
var policyOwners = regexp.MustCompile(`// gateway\.tailscale\.com/owner=(\S+)`)

func init() { addCase(policyFragmentCase()) }

func policyFragmentCase() kindCase[*v1alpha1.PolicyFragment] {
	const (
		others = "\t\"hosts\": {\n\t\t// gateway.tailscale.com/owner=far/default/others\n\t\t\"others\": \"10.9.9.9\", // by others\n\t},\n"
		theirs = "far/default/theirs"
		tag    = "tag:shop"
	)
	c := lifecycle.PolicyFragment(caseNames)
	read := func(e *env) string {
		p, err := e.tailnet.PolicyFile().Raw(e.Context())
		e.must(err)
		return p.HuJSON
	}
	replace := func(e *env, from, to string) {
		text := read(e)
		if !strings.Contains(text, from) {
			e.Fatalf("%q is not in the policy file:\n%s", from, text)
		}
		e.must(e.tailnet.PolicyFile().Set(e.Context(), strings.Replace(text, from, to, 1), ""))
	}
	return kindCase[*v1alpha1.PolicyFragment]{
		Kind:   v1alpha1.PolicyFragmentKind,
		Shared: c,
		// The fragment's own tag may host its service.
		New: func(*env) *v1alpha1.PolicyFragment {
			mg := c.New()
			p := &mg.Spec.ForProvider
			p.TagOwners = map[string][]string{tag: {"tag:k8s-operator"}}
			for service := range p.AutoApprovers.Services {
				p.AutoApprovers.Services[service] = []string{tag}
			}
			return mg
		},
		Others: func(e *env) func() (any, error) {
			replace(e, "\n}\n", "\n"+others+"}\n")
			return func() (any, error) {
				text := read(e)
				return []bool{strings.Contains(text, `"others": "10.9.9.9", // by others`), strings.Contains(text, "// Somebody's own comment.")}, nil
			}
		},
		// The owners of entries. Each owner is one object.
		Count: func(e *env) int {
			found := map[string]bool{}
			for _, m := range policyOwners.FindAllStringSubmatch(read(e), -1) {
				found[m[1]] = true
			}
			return len(found)
		},
		Check: func(e *env, mg *v1alpha1.PolicyFragment) error {
			if err := c.Check(e.Context(), e.tailnet, mg); err != nil {
				return err
			}
			std, err := hujson.Standardize([]byte(read(e)))
			if err != nil {
				return err
			}
			var file struct {
				TagOwners map[string][]string `json:"tagOwners"`
				Grants    []json.RawMessage   `json:"grants"`
			}
			if err := json.Unmarshal(std, &file); err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			if err := lifecycle.Differ(p.TagOwners[tag], file.TagOwners[tag]); err != nil {
				return errors.Wrapf(err, "tagOwners %s", tag)
			}
			// One grant is in the file from the beginning.
			if n := len(file.Grants) - len(p.Grants); n != 1 {
				return errors.Errorf("there are %d grants of others", n)
			}
			return nil
		},
		Update: func(_ *env, mg *v1alpha1.PolicyFragment) {
			c.Update(mg)
			p := &mg.Spec.ForProvider
			for host := range p.Hosts {
				p.Grants = []v1alpha1.PolicyObject{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"src": [%q], "dst": [%q], "ip": ["tcp:6379"]}`, tag, host)}}}
				p.Tests = []v1alpha1.PolicyObject{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"src": %q, "accept": [%q]}`, tag, host+":6379")}}}
			}
		},
		// All entries of the object exist, with other values.
		Foreign: func(e *env, mg *v1alpha1.PolicyFragment) string {
			mark := "\n\t\t// gateway.tailscale.com/owner=" + theirs + "\n\t\t"
			p := mg.Spec.ForProvider
			for host := range p.Hosts {
				replace(e, "\"hosts\": {", "\"hosts\": {"+mark+fmt.Sprintf("%q: %q,", host, "10.7.7.7"))
			}
			replace(e, "\"tagOwners\": {", "\"tagOwners\": {"+mark+fmt.Sprintf("%q: [],", tag))
			for service := range p.AutoApprovers.Services {
				replace(e, "\"services\": {", "\"services\": {"+mark+fmt.Sprintf("%q: [%q],", service, "tag:k8s"))
			}
			return theirs
		},
		Adopt: func(mg *v1alpha1.PolicyFragment, name string) {
			xpmeta.SetExternalName(mg, name)
			mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
		},
		Refused: "adoptionPolicy",
		Bad: []badInput[*v1alpha1.PolicyFragment]{
			{Name: "Nothing", Break: func(mg *v1alpha1.PolicyFragment) {
				mg.Spec.ForProvider = v1alpha1.PolicyFragmentParameters{}
			}, Want: []string{"spec.forProvider", "at least one section"}},
			{Name: "OwnersOfNoTag", Break: func(mg *v1alpha1.PolicyFragment) {
				mg.Spec.ForProvider.TagOwners = map[string][]string{"shop": {}}
			}, Want: []string{"spec.forProvider.tagOwners", "keys must be tags"}},
			{Name: "NoGroup", Break: func(mg *v1alpha1.PolicyFragment) {
				mg.Spec.ForProvider.Groups = map[string][]string{"ops": {}}
			}, Want: []string{"spec.forProvider.groups", "must begin with group:"}},
			{Name: "NoPosture", Break: func(mg *v1alpha1.PolicyFragment) {
				mg.Spec.ForProvider.Postures = map[string][]string{"mac": {}}
			}, Want: []string{"spec.forProvider.postures", "must begin with posture:"}},
			{Name: "GrantIsNoObject", Break: func(mg *v1alpha1.PolicyFragment) {
				mg.Spec.ForProvider.Grants = []v1alpha1.PolicyObject{{RawExtension: runtime.RawExtension{Raw: []byte(`"everything"`)}}}
			}, Want: []string{"spec.forProvider.grants[0]", "object"}},
			{Name: "BadAdoptionPolicy", Break: func(mg *v1alpha1.PolicyFragment) { mg.Spec.ForProvider.AdoptionPolicy = "Steal" }, Want: []string{"spec.forProvider.adoptionPolicy", "Refuse"}},
		},
	}
}
