// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// RemoveSecretKeys removes keys from a Secret. Keys that it does not have are ignored.
func RemoveSecretKeys(ctx context.Context, c client.Client, key client.ObjectKey, keys []string) error {
	data := make(map[string]any, len(keys))
	for _, k := range keys {
		data[k] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return errors.Wrap(err, "cannot encode patch")
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return errors.Wrapf(c.Patch(ctx, s, client.RawPatch(types.MergePatchType, patch)), "cannot remove keys from Secret %q", key.Name)
}
