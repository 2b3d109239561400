// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// AuthKey returns the life of an AuthKey. Its keys are for one node, and nobody gets them. A revoked key
// is replaced half a minute after it was created.
func AuthKey(n Names) Case[*v1alpha1.AuthKey] {
	return Case[*v1alpha1.AuthKey]{
		New: func() *v1alpha1.AuthKey {
			return &v1alpha1.AuthKey{Spec: v1alpha1.AuthKeySpec{ForProvider: v1alpha1.AuthKeyParameters{
				Description: n.Prefix, Tags: slices.Clone(n.Tags[:1]), Expiry: &metav1.Duration{Duration: time.Hour},
			}}}
		},
		Update: func(mg *v1alpha1.AuthKey) {
			p := &mg.Spec.ForProvider
			p.Tags, p.Ephemeral, p.Expiry = slices.Clone(n.Tags), true, &metav1.Duration{Duration: 2 * time.Hour}
		},
		Check: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.AuthKey) error {
			id := xpmeta.GetExternalName(mg)
			if id == "" {
				return errors.New("there is no external name")
			}
			k, err := tailnet.Keys().Get(ctx, id)
			if err != nil {
				return err
			}
			type seen struct {
				Described, Invalid, Reusable, Ephemeral bool
				Tags                                    []string
				Life                                    time.Duration
			}
			p, c := mg.Spec.ForProvider, k.Capabilities.Devices.Create
			return Differ(
				seen{Described: true, Reusable: p.Reusable, Ephemeral: p.Ephemeral, Tags: Texts(p.Tags), Life: p.Expiry.Duration},
				seen{
					Described: strings.HasSuffix(k.Description, p.Description), Invalid: k.Invalid, Reusable: c.Reusable, Ephemeral: c.Ephemeral,
					Tags: Texts(c.Tags), Life: k.Expires.Sub(k.Created).Round(time.Minute),
				})
		},
		Drift: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.AuthKey) error {
			return tailnet.Keys().Delete(ctx, xpmeta.GetExternalName(mg))
		},
	}
}
