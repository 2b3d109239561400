// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// policyOwners matches owners in a policy file.
var policyOwners = regexp.MustCompile(`// gateway\.tailscale\.com/owner=(\S+)`)

func init() { addCase(policyFragmentCase()) }

func policyFragmentCase() kindCase[*v1alpha1.PolicyFragment] {
	const (
		others = "\t\"hosts\": {\n\t\t// gateway.tailscale.com/owner=far/default/others\n\t\t\"others\": \"10.9.9.9\", // by others\n\t},\n"
		theirs = "far/default/theirs"
	)
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
	// The sections that the object names.
	type sections struct {
		TagOwners     map[string][]string `json:"tagOwners"`
		Hosts         map[string]string   `json:"hosts"`
		AutoApprovers struct {
			Services map[string][]string `json:"services"`
		} `json:"autoApprovers"`
		Grants []json.RawMessage `json:"grants"`
	}
	return kindCase[*v1alpha1.PolicyFragment]{
		Kind: v1alpha1.PolicyFragmentKind,
		New: func(*env) *v1alpha1.PolicyFragment {
			return &v1alpha1.PolicyFragment{Spec: v1alpha1.PolicyFragmentSpec{ForProvider: v1alpha1.PolicyFragmentParameters{
				TagOwners:     map[string][]string{"tag:shop": {"tag:k8s-operator"}},
				Hosts:         map[string]string{"shop-db": "10.0.0.1"},
				AutoApprovers: &v1alpha1.PolicyAutoApprovers{Services: map[string][]string{"svc:shop": {"tag:shop"}}},
			}}}
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
			std, err := hujson.Standardize([]byte(read(e)))
			if err != nil {
				return err
			}
			var got sections
			if err := json.Unmarshal(std, &got); err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			for t, o := range p.TagOwners {
				if err := differ(o, got.TagOwners[t]); err != nil {
					return errors.Wrapf(err, "tagOwners %s", t)
				}
			}
			for h, a := range p.Hosts {
				if err := differ(a, got.Hosts[h]); err != nil {
					return errors.Wrapf(err, "hosts %s", h)
				}
			}
			if p.AutoApprovers == nil && got.AutoApprovers.Services["svc:shop"] != nil {
				return errors.New("svc:shop still has approvers")
			}
			if p.AutoApprovers != nil {
				if err := differ(p.AutoApprovers.Services["svc:shop"], got.AutoApprovers.Services["svc:shop"]); err != nil {
					return errors.Wrap(err, "approvers of svc:shop")
				}
			}
			// One grant is in the file from the beginning.
			if n := len(got.Grants) - len(p.Grants); n != 1 {
				return errors.Errorf("there are %d grants of others", n)
			}
			return nil
		},
		Drift: func(e *env, _ *v1alpha1.PolicyFragment) { replace(e, `"shop-db": "10.0.0.1"`, `"shop-db": "10.0.0.9"`) },
		Update: func(_ *env, mg *v1alpha1.PolicyFragment) {
			p := &mg.Spec.ForProvider
			p.Hosts, p.AutoApprovers = map[string]string{"shop-cache": "10.0.0.2"}, nil
			p.Grants = []v1alpha1.PolicyObject{{RawExtension: runtime.RawExtension{Raw: []byte(`{"src": ["tag:shop"], "dst": ["shop-cache"], "ip": ["tcp:6379"]}`)}}}
			p.Tests = []v1alpha1.PolicyObject{{RawExtension: runtime.RawExtension{Raw: []byte(`{"src": "tag:shop", "accept": ["shop-cache:6379"]}`)}}}
		},
		// All entries of the object exist, with other values.
		Foreign: func(e *env, _ *v1alpha1.PolicyFragment) string {
			mark := "\n\t\t// gateway.tailscale.com/owner=" + theirs + "\n\t\t"
			replace(e, "\"hosts\": {", "\"hosts\": {"+mark+`"shop-db": "10.7.7.7",`)
			replace(e, "\"tagOwners\": {", "\"tagOwners\": {"+mark+`"tag:shop": [],`)
			replace(e, "\"services\": {", "\"services\": {"+mark+`"svc:shop": ["tag:k8s"],`)
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
