// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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
	{list: func() resource.ManagedList { return &v1alpha1.ContactsList{} }},
	{list: func() resource.ManagedList { return &v1alpha1.DNSList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.SplitDNSList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.VIPServiceList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.MachineList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.PostureIntegrationList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.LogstreamConfigurationList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.FederatedIdentityList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.OAuthClientList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.WebhookList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.AuthKeyList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.DeviceList{} }, cleansUp: true},
	{list: func() resource.ManagedList { return &v1alpha1.DiscoveryList{} }},
	{list: func() resource.ManagedList { return &v1alpha1.PolicyFragmentList{} }, cleansUp: true},
}

// gvk of the kind.
func (k managedKind) gvk(s *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(k.list(), s)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, errors.Wrap(err, "cannot tell the kind of a list")
}

// object makes an empty object of the kind.
func (k managedKind) object(s *runtime.Scheme) (client.Object, error) {
	gvk, err := k.gvk(s)
	if err != nil {
		return nil, err
	}
	made, err := s.New(gvk)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make an object of kind %s", gvk.Kind)
	}
	o, ok := made.(client.Object)
	if !ok {
		return nil, errors.Errorf("kind %s is no object", gvk.Kind)
	}
	return o, nil
}

// countUsers counts the managed resources that name a config.
func countUsers(ctx context.Context, kube client.Reader, kind string, pc resource.ProviderConfig) (users, error) {
	var u users
	for _, k := range managedKinds {
		l := k.list()
		// A ProviderConfig has a namespace, a ClusterProviderConfig has none.
		err := kube.List(ctx, l, client.InNamespace(pc.GetNamespace()))
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
			if k.cleansUp {
				u.needing++
			}
		}
	}
	return u, nil
}

// A configured is a config and the Secret that it names, if it does.
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
		out = append(out, configuredBy(v1alpha1.ClusterProviderConfigKind, c, c.Spec))
	}
	for i := range namespaced.Items {
		c := &namespaced.Items[i]
		out = append(out, configuredBy(v1alpha1.ProviderConfigKind, c, c.Spec))
	}
	return out, nil
}

func configuredBy(kind string, pc resource.ProviderConfig, spec v1alpha1.ProviderConfigSpec) configured {
	c := configured{kind: kind, config: pc}
	if ref := spec.Credentials.SecretReference(); ref != nil {
		c.secretNamespace, c.secretName = ref.Namespace, ref.Name
	}
	return c
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
