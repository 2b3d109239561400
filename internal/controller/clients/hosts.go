// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// checkHosts returns an error if a ProviderConfig names a host that it may not. Any user with
// access to a namespace may write a ProviderConfig, and the provider reaches hosts that the user's
// pods cannot. ClusterProviderConfigs belong to the platform team, and so do the hosts that they
// name.
func (c *Connector) checkHosts(ctx context.Context, pc config) error {
	if pc.namespace == "" {
		return nil
	}
	allowed := slices.Clone(c.hosts)
	l := &v1alpha1.ClusterProviderConfigList{}
	if err := c.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrap(err, "cannot list ClusterProviderConfigs")
	}
	for i := range l.Items {
		for _, u := range []string{l.Items[i].Spec.APIURL, l.Items[i].Spec.ControlURL} {
			if h := tailscale.HostOf(u); h != "" {
				allowed = append(allowed, h)
			}
		}
	}
	for _, f := range []struct{ field, url string }{{"spec.apiURL", pc.spec.APIURL}, {"spec.controlURL", pc.spec.ControlURL}} {
		if f.url == "" && f.field == "spec.controlURL" || allowed.Allow(f.url) {
			continue
		}
		return &CredentialsError{
			Reason: meta.ReasonHostNotAllowed,
			Message: fmt.Sprintf("%s %q: %s: %s is no host that the provider sends to for a namespace; ask who runs the provider to add it to its flag --allowed-hosts, or use a ClusterProviderConfig",
				pc.kind, pc.name, f.field, tailscale.OneLine(f.url)),
		}
	}
	return nil
}
