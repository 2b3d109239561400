// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// RemoveSecretKeys removes keys from a Secret. Keys that it does not have are ignored.
func RemoveSecretKeys(ctx context.Context, c Client, key types.NamespacedName, keys []string) error {
	data := make(map[string]any, len(keys))
	for _, k := range keys {
		data[k] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return errors.Wrap(err, "cannot encode patch")
	}
	return errors.Wrapf(c.PatchSecret(ctx, key, patch), "cannot remove keys from Secret %q", key.Name)
}
