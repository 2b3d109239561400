// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// VIPService returns the life of a VIPService that nobody hosts.
func VIPService(n Names) Case[*v1alpha1.VIPService] {
	return Case[*v1alpha1.VIPService]{
		New: func() *v1alpha1.VIPService {
			return &v1alpha1.VIPService{Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{
				Name: v1alpha1.ServiceName("svc:" + n.Prefix + "-shop"), Comment: "made by us", Ports: []v1alpha1.ServicePort{"tcp:80"}, Tags: slices.Clone(n.Tags[:1]),
			}}}
		},
		Update: func(mg *v1alpha1.VIPService) {
			p := &mg.Spec.ForProvider
			p.Ports, p.Tags, p.Comment = []v1alpha1.ServicePort{"tcp:80", "tcp:8080"}, slices.Clone(n.Tags), "changed by us"
		},
		Check: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.VIPService) error {
			p := mg.Spec.ForProvider
			s, err := tailnet.Services().Get(ctx, string(p.Name))
			if err != nil {
				return err
			}
			type seen struct {
				Comment     string
				Ports, Tags []string
			}
			return Differ(
				seen{Comment: p.Comment, Ports: Texts(p.Ports), Tags: Texts(p.Tags)},
				seen{Comment: s.Comment, Ports: Texts(s.Ports), Tags: Texts(s.Tags)})
		},
		Drift: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.VIPService) error {
			s, err := tailnet.Services().Get(ctx, string(mg.Spec.ForProvider.Name))
			if err != nil {
				return err
			}
			s.Comment, s.Ports = "changed by hand", []string{"tcp:81"}
			return tailnet.Services().CreateOrUpdate(ctx, *s)
		},
	}
}
