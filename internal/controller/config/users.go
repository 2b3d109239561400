// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// users of a config.
type users struct {
	// all managed resources that name the config.
	all int64

	// needing are those that have something to clean up in the tailnet.
	needing int64
}

// A managedKind is one kind of users of configs.
type managedKind struct {
	list func() resource.ManagedList

	// cleansUp says that the kind makes something in the tailnet.
	cleansUp bool
}

// managedKinds are all kinds that refer to configs. A kind to come is added
// here.
var managedKinds = []managedKind{
	{list: func() resource.ManagedList { return &v1alpha1.TailnetList{} }},
	{list: func() resource.ManagedList { return &v1alpha1.VIPServiceList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.MachineList{} }, cleansUp: true},
}

// countUsers counts the managed resources that name a config.
func countUsers(ctx context.Context, kube client.Reader, kind string, pc resource.ProviderConfig) (users, error) {
	var u users
	for _, k := range managedKinds {
		l := k.list()
		// A ProviderConfig has a namespace, a ClusterProviderConfig has none.
		if err := kube.List(ctx, l, client.InNamespace(pc.GetNamespace())); err != nil {
			return u, errors.Wrap(err, "cannot list users of provider config")
		}
		for _, mg := range l.GetItems() {
			m, ok := mg.(resource.ModernManaged)
			if !ok || m.GetProviderConfigReference() == nil {
				continue
			}
			if ref := m.GetProviderConfigReference(); ref.Kind != kind || ref.Name != pc.GetName() {
				continue
			}
			u.all++
			if k.cleansUp {
				u.needing++
			}
		}
	}
	return u, nil
}

// A configured is a config and the Secret that it names.
type configured struct {
	kind            string
	config          resource.ProviderConfig
	secretNamespace string
	secretName      string
}

// listConfigs returns all configs of both kinds.
func listConfigs(ctx context.Context, kube client.Reader) ([]configured, error) {
	cluster, namespaced := &v1alpha1.ClusterProviderConfigList{}, &v1alpha1.ProviderConfigList{}
	if err := kube.List(ctx, cluster); err != nil {
		return nil, errors.Wrap(err, "cannot list ClusterProviderConfigs")
	}
	if err := kube.List(ctx, namespaced); err != nil {
		return nil, errors.Wrap(err, "cannot list ProviderConfigs")
	}
	var out []configured
	for i := range cluster.Items {
		c := &cluster.Items[i]
		ref := c.Spec.Credentials.OAuthSecretRef
		out = append(out, configured{kind: v1alpha1.ClusterProviderConfigKind, config: c, secretNamespace: ref.Namespace, secretName: ref.Name})
	}
	for i := range namespaced.Items {
		c := &namespaced.Items[i]
		ref := c.Spec.Credentials.OAuthSecretRef
		out = append(out, configured{kind: v1alpha1.ProviderConfigKind, config: c, secretNamespace: ref.Namespace, secretName: ref.Name})
	}
	return out, nil
}

// newConfig makes an empty config of a kind, and a pointer to its spec.
func newConfig(kind string) (resource.ProviderConfig, *v1alpha1.ProviderConfigSpec) {
	if kind == v1alpha1.ClusterProviderConfigKind {
		c := &v1alpha1.ClusterProviderConfig{}
		return c, &c.Spec
	}
	c := &v1alpha1.ProviderConfig{}
	return c, &c.Spec
}
