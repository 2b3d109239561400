// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// users counts the users of a config.
type users struct {
	// all counts the managed resources that name the config.
	all int64

	// needing counts those that must clean up something in the tailnet.
	needing int64
}

// countUsers counts the managed resources that name a config.
func (r *Reconciler) countUsers(ctx context.Context, kind string, pc resource.ProviderConfig) (users, error) {
	var u users
	for _, k := range r.kinds {
		l := k.List()
		// A ProviderConfig has a namespace, a ClusterProviderConfig has none.
		err := r.kube.List(ctx, l, client.InNamespace(pc.GetNamespace()), client.UnsafeDisableDeepCopy)
		// A kind that is not installed has no objects.
		if apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
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
			if k.CleansUp {
				u.needing++
			}
		}
	}
	return u, nil
}

// A configSecret is a config and the Secret that it names, if any.
type configSecret struct {
	kind            string
	config          resource.ProviderConfig
	secretNamespace string
	secretName      string
}

// listConfigs returns all configs of both kinds.
func listConfigs(ctx context.Context, kube client.Reader) ([]configSecret, error) {
	cluster, namespaced := &v1alpha1.ClusterProviderConfigList{}, &v1alpha1.ProviderConfigList{}
	if err := kube.List(ctx, cluster); err != nil {
		return nil, errors.Wrap(err, "cannot list ClusterProviderConfigs")
	}
	if err := kube.List(ctx, namespaced); err != nil {
		return nil, errors.Wrap(err, "cannot list ProviderConfigs")
	}
	var out []configSecret
	for i := range cluster.Items {
		c := &cluster.Items[i]
		out = append(out, configSecretOf(v1alpha1.ClusterProviderConfigKind, c, c.Spec))
	}
	for i := range namespaced.Items {
		c := &namespaced.Items[i]
		out = append(out, configSecretOf(v1alpha1.ProviderConfigKind, c, c.Spec))
	}
	return out, nil
}

func configSecretOf(kind string, pc resource.ProviderConfig, spec v1alpha1.ProviderConfigSpec) configSecret {
	c := configSecret{kind: kind, config: pc}
	if ref := spec.Credentials.SecretReference(); ref != nil {
		c.secretNamespace, c.secretName = ref.Namespace, ref.Name
	}
	return c
}

// newConfig returns an empty config of a kind, and a pointer to its spec.
func newConfig(kind string) (resource.ProviderConfig, *v1alpha1.ProviderConfigSpec) {
	if kind == v1alpha1.ClusterProviderConfigKind {
		c := &v1alpha1.ClusterProviderConfig{}
		return c, &c.Spec
	}
	c := &v1alpha1.ProviderConfig{}
	return c, &c.Spec
}
