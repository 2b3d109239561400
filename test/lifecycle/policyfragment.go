// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/tailscale/hujson"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// PolicyFragment returns the life of a PolicyFragment: the name of an address for documentation, which no
// rule uses, and the approvers of a service that does not exist.
func PolicyFragment(n Names) Case[*v1alpha1.PolicyFragment] {
	database, cache := n.Prefix+"-db", n.Prefix+"-cache"
	return Case[*v1alpha1.PolicyFragment]{
		New: func() *v1alpha1.PolicyFragment {
			return &v1alpha1.PolicyFragment{Spec: v1alpha1.PolicyFragmentSpec{ForProvider: v1alpha1.PolicyFragmentParameters{
				Hosts:         map[string]string{database: "192.0.2.1"},
				AutoApprovers: &v1alpha1.PolicyAutoApprovers{Services: map[string][]string{"svc:" + database: Texts(n.Tags[:1])}},
			}}}
		},
		Update: func(mg *v1alpha1.PolicyFragment) {
			p := &mg.Spec.ForProvider
			p.Hosts, p.AutoApprovers = map[string]string{cache: "192.0.2.2"}, nil
		},
		Check: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.PolicyFragment) error {
			raw, err := tailnet.PolicyFile().Raw(ctx)
			if err != nil {
				return err
			}
			std, err := hujson.Standardize([]byte(raw.HuJSON))
			if err != nil {
				return errors.Wrap(err, "cannot parse the policy file")
			}
			var file struct {
				Hosts         map[string]string `json:"hosts"`
				AutoApprovers struct {
					Services map[string][]string `json:"services"`
				} `json:"autoApprovers"`
			}
			if err := json.Unmarshal(std, &file); err != nil {
				return errors.Wrap(err, "cannot decode the policy file")
			}
			want := mg.Spec.ForProvider.DeepCopy()
			if want.AutoApprovers == nil {
				want.AutoApprovers = &v1alpha1.PolicyAutoApprovers{}
			}
			if err := Differ(named(n.Prefix, want.Hosts), named(n.Prefix, file.Hosts)); err != nil {
				return errors.Wrap(err, "hosts")
			}
			return errors.Wrap(Differ(named("svc:"+n.Prefix, want.AutoApprovers.Services), named("svc:"+n.Prefix, file.AutoApprovers.Services)), "approvers of services")
		},
		Drift: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.PolicyFragment) error {
			raw, err := tailnet.PolicyFile().Raw(ctx)
			if err != nil {
				return err
			}
			text := raw.HuJSON
			for host, address := range mg.Spec.ForProvider.Hosts {
				text = strings.Replace(text, fmt.Sprintf("%q: %q", host, address), fmt.Sprintf("%q: %q", host, "192.0.2.9"), 1)
			}
			if text == raw.HuJSON {
				return errors.New("the policy file does not have the object's hosts")
			}
			return tailnet.PolicyFile().Set(ctx, text, raw.ETag)
		},
	}
}

// named returns the entries of a section whose names begin with a prefix. It never returns nil.
func named[V any](prefix string, section map[string]V) map[string]V {
	out := maps.Clone(section)
	maps.DeleteFunc(out, func(name string, _ V) bool { return !strings.HasPrefix(name, prefix+"-") })
	if out == nil {
		out = map[string]V{}
	}
	return out
}
