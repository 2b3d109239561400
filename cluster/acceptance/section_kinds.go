// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/authkey"
	managedkinds "github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/policyfragment"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/splitdns"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/vipservice"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/webhook"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

const sectionKinds = "kinds"

// kindRows returns the rows that run the controllers of the kinds in test/lifecycle.
func kindRows() []row {
	var o setup.Options
	return []row{
		kindRow(authkey.Kind(o), needWrite, lifecycle.AuthKey, func(mg *v1alpha1.AuthKey) []object {
			return []object{{kindKey, mg.Spec.ForProvider.Description, ""}}
		}),
		kindRow(policyfragment.Kind(o), needPolicy, lifecycle.PolicyFragment, func(mg *v1alpha1.PolicyFragment) []object {
			return []object{{kindFragment, fragmentRoot + mg.Namespace + "/" + mg.Name, ""}}
		}),
		kindRow(splitdns.Kind(o), needWrite, lifecycle.SplitDNS, func(mg *v1alpha1.SplitDNS) []object {
			var out []object
			for _, domain := range mg.Spec.ForProvider.Domains {
				out = append(out, object{kindSplitDNS, domain, ""})
			}
			return out
		}),
		kindRow(vipservice.Kind(o), needWrite, lifecycle.VIPService, func(mg *v1alpha1.VIPService) []object {
			return []object{{kindService, string(mg.Spec.ForProvider.Name), ""}}
		}),
		kindRow(webhook.Kind(o), needWrite, lifecycle.Webhook, func(mg *v1alpha1.Webhook) []object {
			return []object{{kindWebhook, mg.Spec.ForProvider.EndpointURL, ""}}
		}),
	}
}

// kindRow returns the row of a kind. additions returns what an object adds to the tailnet, for the ledger.
func kindRow[T resource.ModernManaged](k managedkinds.Kind[T], flag need, choose func(lifecycle.Names) lifecycle.Case[T], additions func(T) []object) row {
	name := k.GroupVersionKind.Kind
	return row{
		section: sectionKinds, name: strings.ToLower(name), needs: []need{flag},
		about: "The controller of " + name + " objects creates one, applies a change, corrects a change by hand, and deletes what it created.",
		run: func(ctx context.Context, t *turn) error {
			c := choose(lifecycle.Names{Prefix: t.run.prefix, Tags: []v1alpha1.Tag{v1alpha1.Tag(t.run.opts.Tag)}})
			l, err := newLife(ctx, t, k, c, additions)
			if err != nil {
				return err
			}
			return l.pass(ctx)
		},
	}
}
