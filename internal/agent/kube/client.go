// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is the agent's client of the Kubernetes API: it watches objects in the agent's
// namespace, and writes the Machine's status. It makes no decisions.
package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// NewScheme returns a scheme with the kinds that the agent uses.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		return nil, errors.Wrap(err, "cannot add core kinds to scheme")
	}
	return s, errors.Wrap(v1alpha1.AddToScheme(s), "cannot add tailnet kinds to scheme")
}

// NewClient returns a client for the API server in cfg. It knows all kinds that it needs and
// uses no discovery, so it also works for an agent that starts while the API server is
// unavailable.
func NewClient(cfg *rest.Config) (client.WithWatch, error) {
	s, err := NewScheme()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.MachineGroupVersionKind, meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ServiceAttachmentKind), meta.RESTScopeNamespace)

	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = version.UserAgent()
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: s, Mapper: mapper})
	return c, errors.Wrap(err, "cannot make Kubernetes client")
}
