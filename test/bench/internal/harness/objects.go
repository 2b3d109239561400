// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// configName is the name of every ProviderConfig and of its Secret.
const configName = "tailnet"

// Object returns an object of a managed kind that uses the namespace's own ProviderConfig.
func Object(kind, namespace, name string, forProvider map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"providerConfigRef": map[string]any{"kind": v1alpha1.ProviderConfigKind, "name": configName},
			"forProvider":       forProvider,
		},
	}}
	o.SetGroupVersionKind(Kind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Kind returns the GroupVersionKind of a managed resource.
func Kind(kind string) schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind(kind)
}

// Configure creates a namespace with a ProviderConfig. In the tailnet, it appears as a cluster.
func (e *Env) Configure(ctx context.Context, namespace, clusterID, url string) error {
	core := func(kind, ns, name string, more map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: more}
		if o.Object == nil {
			o.Object = map[string]any{}
		}
		o.SetAPIVersion("v1")
		o.SetKind(kind)
		o.SetNamespace(ns)
		o.SetName(name)
		return o
	}
	cfg := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"apiURL":      url,
		"clusterID":   clusterID,
		"credentials": map[string]any{"oauthSecretRef": map[string]any{"namespace": namespace, "name": configName}},
	}}}
	cfg.SetGroupVersionKind(Kind(v1alpha1.ProviderConfigKind))
	cfg.SetNamespace(namespace)
	cfg.SetName(configName)
	for _, o := range []*unstructured.Unstructured{
		core("Namespace", "", namespace, nil),
		core("Secret", namespace, configName, map[string]any{"stringData": Credential()}),
		cfg,
	} {
		if err := e.Kube.Create(ctx, o); err != nil {
			return errors.Wrapf(err, "cannot create %s %s", o.GetKind(), o.GetName())
		}
	}
	return nil
}

// Create creates objects with this many parallel writes.
func (e *Env) Create(ctx context.Context, parallel int, objects []*unstructured.Unstructured) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, o := range objects {
		g.Go(func() error {
			return errors.Wrapf(e.Kube.Create(ctx, o), "cannot create %s %s", o.GetKind(), o.GetName())
		})
	}
	return g.Wait()
}
