// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// signer returns what signs the auth keys of Machines, or nil if the config has no signing key. Only
// the connection of a Machine has it, so that the key is read for nothing else.
func (c *Connector) signer(ctx context.Context, pc config) (*tailscale.LockSigner, error) {
	if pc.spec.TailnetLock == nil {
		return nil, nil // No signing key is a valid result.
	}
	ref := pc.spec.TailnetLock.SigningKeySecretRef
	// Otherwise, any user who may write a config could use any namespace's Secret.
	if pc.namespace != "" && ref.Namespace != pc.namespace {
		return nil, errors.Errorf("ProviderConfig %q must use a signing key in its namespace", pc.name)
	}
	name := ref.Namespace + "/" + ref.Name
	s := &corev1.Secret{}
	err := c.kube.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, &CredentialsError{
			Reason:  meta.ReasonSecretNotFound,
			Message: fmt.Sprintf("Secret %s with the signing key of tailnet lock does not exist; create it, or remove the reference from %s %q", name, pc.kind, pc.name),
		}
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get Secret %s", name)
	}
	key := cmp.Or(ref.Key, meta.SecretKeySigningKey)
	signer, err := tailscale.ParseLockSigner(string(s.Data[key]))
	if err != nil {
		return nil, &CredentialsError{
			Reason:  meta.ReasonSecretIncomplete,
			Message: fmt.Sprintf("Secret %s has no signing key of tailnet lock under %s: %v", name, key, err),
		}
	}
	return signer, nil
}
