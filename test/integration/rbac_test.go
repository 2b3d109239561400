// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// asProvider returns a config with the provider's permissions in a cluster: those from Crossplane
// and from the project's manifests.
func asProvider(ctx context.Context, kube client.Client, cfg *rest.Config) (*rest.Config, error) {
	root, err := apiserver.Root()
	if err != nil {
		return nil, errors.Wrap(err, "cannot find the manifests")
	}
	objects, err := apiserver.ProviderRoles(root)
	if err != nil {
		return nil, errors.Wrap(err, "cannot build the provider's roles")
	}
	installed, err := apiserver.Installed()
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the manifests")
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apiserver.CrossplaneNamespace}}
	for _, o := range slices.Concat([]client.Object{ns}, objects, installed) {
		if err := kube.Create(ctx, o); err != nil {
			return nil, errors.Wrapf(err, "cannot create %q", o.GetName())
		}
	}
	out := rest.CopyConfig(cfg)
	out.Impersonate.UserName = "system:serviceaccount:" + apiserver.CrossplaneNamespace + ":" + apiserver.AccountProvider
	return out, nil
}
