// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A kubeClient is an agent's client of controller-runtime's fake. Like all fakes, it does not support
// watch-list.
type kubeClient struct{ api client.WithWatch }

var _ kube.Client = kubeClient{}

func (c kubeClient) IsWatchListSemanticsUnSupported() bool { return true }

func (c kubeClient) List(ctx context.Context, r kube.Resource, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	l, lo, err := c.selected(r, namespace, o)
	if err != nil {
		return nil, err
	}
	return l, c.api.List(ctx, l, lo)
}

func (c kubeClient) Watch(ctx context.Context, r kube.Resource, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	l, lo, err := c.selected(r, namespace, o)
	if err != nil {
		return nil, err
	}
	return c.api.Watch(ctx, l, lo)
}

// selected returns an empty list of a resource, and the options for the fake, which knows parsed
// selectors only.
func (c kubeClient) selected(r kube.Resource, namespace string, o metav1.ListOptions) (client.ObjectList, *client.ListOptions, error) {
	l, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot parse label selector")
	}
	lo := &client.ListOptions{Namespace: namespace, LabelSelector: l, Raw: &o}
	if o.FieldSelector != "" {
		if lo.FieldSelector, err = fields.ParseSelector(o.FieldSelector); err != nil {
			return nil, nil, errors.Wrap(err, "cannot parse field selector")
		}
	}
	switch r {
	case kube.Secrets:
		return &corev1.SecretList{}, lo, nil
	case kube.ConfigMaps:
		return &corev1.ConfigMapList{}, lo, nil
	case kube.ServiceAttachments:
		return &v1alpha1.ServiceAttachmentList{}, lo, nil
	}
	return nil, nil, errors.Errorf("there are no %s", r)
}

func (c kubeClient) PatchSecret(ctx context.Context, key types.NamespacedName, patch []byte) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return c.api.Patch(ctx, s, client.RawPatch(types.MergePatchType, patch))
}

func (c kubeClient) GetMachine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error) {
	m := &v1alpha1.Machine{}
	return m, c.api.Get(ctx, key, m)
}

func (c kubeClient) ApplyMachineStatus(ctx context.Context, _ types.NamespacedName, config []byte) error {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(config, u); err != nil {
		return errors.Wrap(err, "cannot decode Machine")
	}
	return c.api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(kube.FieldManager), client.ForceOwnership)
}
