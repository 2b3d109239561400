// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A backup holds a Machine with its annotations, and its state Secret. A restore gives both other
// UIDs and no owners, and drops the Machine's status; see docs/backup.md. The Machine takes the
// Secret over if the state is that of its device: the annotation with the node ID is where pods and
// tenants cannot write, so a Secret alone never leads to a device.
//
// Until then nothing is done with the device, because the cluster of the backup may still run it.
// The pod waits: its agent needs the config Secret, which is made afterwards.

// restored reports whether a Machine comes from a backup and was not reconciled since: it has a
// device, and no status. In a cluster that was not restored, such a Machine has a state Secret.
func restored(mg *v1alpha1.Machine) bool {
	return meta.NodeIDOf(mg) != "" && mg.Status.AtProvider.NodeID == ""
}

// isBackup reports whether a Secret is the Machine's state Secret from a backup.
func isBackup(mg *v1alpha1.Machine, s *corev1.Secret) bool {
	id, labels := meta.NodeIDOf(mg), s.GetLabels()
	return id != "" && nodeIDOfState(s) == id &&
		len(s.GetOwnerReferences()) == 0 && s.GetDeletionTimestamp() == nil &&
		labels[meta.LabelMachine] == mg.GetName() && labels[meta.LabelSecretType] == meta.SecretTypeState
}

// takeOver makes a state Secret of a backup the Machine's. It fails if the Secret has changed since
// it was read.
func takeOver(ctx context.Context, kube client.Client, mg *v1alpha1.Machine, s *corev1.Secret) error {
	original := s.DeepCopy()
	s.SetOwnerReferences([]metav1.OwnerReference{controllerRef(mg)})
	controllerutil.AddFinalizer(s, secrets.FinalizerState)
	metav1.SetMetaDataLabel(&s.ObjectMeta, meta.LabelBackup, "true")
	err := kube.Patch(ctx, s, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	return errors.Wrapf(err, "cannot take over state Secret %q", s.GetName())
}

// unclaimed reports whether a Machine comes from a backup and has not taken its device over.
func unclaimed(mg *v1alpha1.Machine, s podSecrets) bool {
	return s.backup != nil || s.state == nil && restored(mg)
}

// waitsForRestore returns the condition of an unclaimed Machine that must not take its device over.
// It returns nil if the Machine may.
func (e *external) waitsForRestore(ctx context.Context, mg *v1alpha1.Machine, s podSecrets) (*xpv2.Condition, error) {
	id := meta.NodeIDOf(mg)
	if clusterID := mg.GetAnnotations()[meta.AnnotationClusterID]; clusterID != "" && clusterID != e.clusterID {
		return waiting(meta.ReasonOtherCluster, "The Machine was restored from a backup of the cluster with the ID %q, and the provider config has the ID %q; "+
			"set spec.clusterID of the TailscaleTailnet to %q if this cluster replaces that one, or delete the Machine", clusterID, e.clusterID, clusterID), nil
	}
	if s.backup == nil {
		return waiting(meta.ReasonStateMissing, "The Machine was restored without the state of its device %s; restore Secret %q, "+
			"or delete the Machine so that the node joins as another device", id, mg.GetName()), nil
	}
	d, err := e.api.devices.Device(ctx, id)
	if tailscale.IsNotFound(err) {
		// The node requests another key.
		return nil, nil // Nil without an error means that nothing is in the way.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get device %q", id)
	}
	if d.NodeID == id && d.ConnectedToControl {
		return waiting(meta.ReasonDeviceInUse, "The device %s of the restored Machine is online: the proxies of the cluster from which the backup is still run; "+
			"stop them without deleting their objects", tailscale.OneLine(d.Name)), nil
	}
	return nil, nil // Nil without an error means that nothing is in the way.
}

func waiting(reason xpv2.ConditionReason, format string, args ...any) *xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(fmt.Sprintf(format, args...))
	c.Reason = reason
	return &c
}
