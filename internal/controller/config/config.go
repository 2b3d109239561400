// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package config holds the controllers of ProviderConfigs and ClusterProviderConfigs. They keep a
// config while a managed resource names it, and its credentials Secret while a resource needs it to
// clean up. They find users by the references in their specs. Usages would not do: when a namespace
// is deleted, they vanish before the resources do.
package config

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// finalizer protects a config that is in use. It is crossplane-runtime's finalizer, so tools know
// it.
const finalizer = "in-use.crossplane.io"

const reasonSecretInUse event.Reason = "CredentialsInUse"

// A Reconciler protects configs of one kind and their Secrets.
type Reconciler struct {
	kube   client.Client
	kind   string
	kinds  []kinds.User
	pool   *tailscale.Pool
	log    logging.Logger
	record event.Recorder
}

// Reconcile protects a config and its Secret while they are in use, and releases them afterwards.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.log.Debug("Reconciling", "request", req)
	pc, spec := newConfig(r.kind)
	if err := r.kube.Get(ctx, req.NamespacedName, pc); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get provider config")
	}
	// Counting lists the objects of all kinds, and is needed only where something is being deleted.
	count := sync.OnceValues(func() (users, error) { return r.countUsers(ctx, r.kind, pc) })
	// Workload identity uses no Secret.
	if ref := spec.Credentials.SecretReference(); ref != nil {
		if err := r.secret(ctx, pc, ref.Namespace, ref.Name, count); err != nil {
			return reconcile.Result{}, err
		}
	}
	if xpmeta.WasDeleted(pc) {
		u, err := count()
		if err != nil {
			return reconcile.Result{}, err
		}
		if u.all == 0 {
			return reconcile.Result{}, r.release(ctx, pc)
		}
	}
	if !xpmeta.WasDeleted(pc) && controllerutil.AddFinalizer(pc, finalizer) {
		if err := r.kube.Update(ctx, pc); err != nil {
			return reconcile.Result{}, errors.Wrap(err, "cannot add finalizer to provider config")
		}
	}
	return reconcile.Result{}, r.status(ctx, pc)
}

// status reports why a config that is being deleted still exists. It does not count users:
// functions require configs, and each change of a config runs all of them.
func (r *Reconciler) status(ctx context.Context, pc resource.ProviderConfig) error {
	terminating := pc.GetCondition(providerconfig.TypeTerminating)
	if !xpmeta.WasDeleted(pc) || terminating.Status == corev1.ConditionTrue {
		return nil
	}
	pc.SetConditions(providerconfig.Terminating().WithMessage("Managed resources still use this provider config; it goes when they are deleted"))
	return errors.Wrap(r.kube.Status().Update(ctx, pc), "cannot update status of provider config")
}

// release removes the finalizer from a config that has no users.
func (r *Reconciler) release(ctx context.Context, pc resource.ProviderConfig) error {
	r.pool.Forget(clients.ConfigName(r.kind, pc.GetNamespace(), pc.GetName()))
	if !controllerutil.RemoveFinalizer(pc, finalizer) {
		return nil
	}
	return errors.Wrap(client.IgnoreNotFound(r.kube.Update(ctx, pc)), "cannot remove finalizer from provider config")
}

// secret removes the finalizer from a config's Secret if the Secret or its config is being deleted
// and no resource needs the Secret to clean up. The first resource that uses a Secret adds the
// finalizer; see package clients.
func (r *Reconciler) secret(ctx context.Context, pc resource.ProviderConfig, namespace, name string, count func() (users, error)) error {
	s := &corev1.Secret{}
	err := r.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get Secret %s/%s", namespace, name)
	}
	going := s.GetDeletionTimestamp() != nil
	if !going && !xpmeta.WasDeleted(pc) {
		return nil
	}
	u, err := count()
	if err != nil {
		return err
	}
	if !going && u.all > 0 {
		return nil
	}
	if u.needing > 0 {
		r.record.Event(pc, event.Normal(reasonSecretInUse, fmt.Sprintf("Secret %s/%s is kept until %d managed resources are deleted that need it to clean up", namespace, name, u.needing)))
		return nil
	}
	shared, err := r.needed(ctx, pc, namespace, name, going)
	if err != nil || shared {
		return err
	}
	return clients.Release(ctx, r.kube, s)
}

// needed reports whether another config needs the Secret. If the Secret is being deleted, it is
// needed while a resource must be cleaned up with it. Otherwise it is needed while any other config
// names it.
func (r *Reconciler) needed(ctx context.Context, self resource.ProviderConfig, namespace, name string, going bool) (bool, error) {
	all, err := listConfigs(ctx, r.kube)
	if err != nil {
		return false, err
	}
	for _, c := range all {
		if c.config.GetUID() == self.GetUID() || c.secretNamespace != namespace || c.secretName != name {
			continue
		}
		if !going {
			return true, nil
		}
		u, err := r.countUsers(ctx, c.kind, c.config)
		if err != nil || u.needing > 0 {
			return true, err
		}
	}
	return false, nil
}
