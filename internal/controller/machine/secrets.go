// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// podSecrets are the Secrets of a machine. Each may be nil.
type podSecrets struct {
	state  *corev1.Secret
	config *corev1.Secret

	// backup is a state Secret of a backup, which the machine does not control yet. There is no
	// state then.
	backup *corev1.Secret
}

func (s podSecrets) complete() bool { return s.state != nil && s.config != nil }

// getSecrets reads a machine's Secrets. It returns an error for Secrets that the machine does not
// control.
func getSecrets(ctx context.Context, kube client.Client, mg *v1alpha1.Machine) (podSecrets, error) {
	state, err := getSecret(ctx, kube, mg, mg.GetName())
	if err != nil {
		return podSecrets{}, err
	}
	config, err := getSecret(ctx, kube, mg, mg.GetName()+meta.ConfigSecretSuffix)
	if state != nil && !metav1.IsControlledBy(state, mg) {
		return podSecrets{backup: state, config: config}, err
	}
	return podSecrets{state: state, config: config}, err
}

// getSecret reads a Secret that the machine controls, or a state Secret of a backup that it may take
// over.
func getSecret(ctx context.Context, kube client.Client, mg *v1alpha1.Machine, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil, nil // Nil without an error means that there is none.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get Secret %q", name)
	}
	if !metav1.IsControlledBy(s, mg) {
		if deleting(mg) {
			// A Secret that the machine does not control is neither read nor deleted.
			return nil, nil // Nil without an error means that there is none.
		}
		if isBackup(mg, s) {
			return s, nil
		}
		return nil, errors.Errorf("Secret %q exists and is not this Machine's; delete it", name)
	}
	return s, nil
}

func deleting(mg *v1alpha1.Machine) bool { return mg.GetDeletionTimestamp() != nil }

// newSecret returns a Secret of a machine.
func newSecret(mg *v1alpha1.Machine, name, kind string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: mg.GetNamespace(),
			Name:      name,
			Labels: map[string]string{
				meta.LabelMachine:    mg.GetName(),
				meta.LabelSecretType: kind,
			},
			OwnerReferences: []metav1.OwnerReference{controllerRef(mg)},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if kind == meta.SecretTypeState {
		s.SetFinalizers([]string{secrets.FinalizerState})
		s.Labels[meta.LabelBackup] = "true"
	}
	return s
}

// controllerRef returns the owner reference of a machine's Secret.
func controllerRef(mg *v1alpha1.Machine) metav1.OwnerReference {
	owner := metav1.NewControllerRef(mg, v1alpha1.MachineGroupVersionKind)
	// Crossplane deletes in the foreground, which would wait for the Secrets, while the state
	// Secret's finalizer waits for the Machine.
	owner.BlockOwnerDeletion = ptr.To(false)
	return *owner
}

// ensureSecrets creates the Secrets that a machine lacks. The node fills the state Secret, which has
// at most the key of an ACME account at first.
func ensureSecrets(ctx context.Context, kube client.Client, mg *v1alpha1.Machine, s podSecrets) (podSecrets, error) {
	if s.state != nil && s.state.GetDeletionTimestamp() != nil {
		if err := secrets.ReleaseState(ctx, kube, s.state); err != nil {
			return s, err
		}
		s.state = nil
	}
	if s.backup != nil {
		if err := takeOver(ctx, kube, mg, s.backup); err != nil {
			return s, err
		}
		s.state, s.backup = s.backup, nil
	}
	if s.state != nil && s.state.GetLabels()[meta.LabelBackup] == "" {
		// Secrets of earlier versions lack the label.
		original := s.state.DeepCopy()
		metav1.SetMetaDataLabel(&s.state.ObjectMeta, meta.LabelBackup, "true")
		if err := kube.Patch(ctx, s.state, client.MergeFrom(original)); err != nil {
			return s, errors.Wrap(err, "cannot label state Secret")
		}
	}
	if s.state == nil {
		data, err := initialState(ctx, kube, mg)
		if err != nil {
			return s, err
		}
		s.state = newSecret(mg, mg.GetName(), meta.SecretTypeState)
		s.state.Data = data
		if err := kube.Create(ctx, s.state); err != nil {
			return s, errors.Wrap(err, "cannot create state Secret")
		}
	}
	if s.config == nil {
		s.config = newSecret(mg, mg.GetName()+meta.ConfigSecretSuffix, meta.SecretTypeConfig)
		if err := kube.Create(ctx, s.config); err != nil {
			return s, errors.Wrap(err, "cannot create config Secret")
		}
	}
	return s, nil
}

// deleteSecrets deletes a machine's Secrets and removes the finalizer.
func deleteSecrets(ctx context.Context, kube client.Client, s podSecrets) error {
	for _, secret := range []*corev1.Secret{s.config, s.state} {
		if secret == nil {
			continue
		}
		if err := client.IgnoreNotFound(kube.Delete(ctx, secret)); err != nil {
			return errors.Wrapf(err, "cannot delete Secret %q", secret.GetName())
		}
		if err := secrets.ReleaseState(ctx, kube, secret); err != nil {
			return err
		}
	}
	return nil
}
