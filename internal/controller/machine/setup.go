// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// pollUnsettled is the poll interval of a machine that is not in the tailnet yet. Its Secrets are
// watched, so the poll is only for facts from the API.
const pollUnsettled = 10 * time.Second

// settledPause is how long a change of a Secret of a Ready machine waits for others. Tailscaled writes its
// state for each service that it offers or withdraws.
const settledPause = 5 * time.Second

// Kind returns how Machine objects are managed.
func Kind(o setup.Options) kinds.Kind[*v1alpha1.Machine] {
	ours := secrets.OfType(meta.SecretTypeState, meta.SecretTypeConfig)
	return kinds.Kind[*v1alpha1.Machine]{
		GroupVersionKind: v1alpha1.MachineGroupVersionKind,
		Object:           &v1alpha1.Machine{},
		List:             func() resource.ManagedList { return &v1alpha1.MachineList{} },
		Connector: func(env kinds.Env, connect kinds.Connect) managed.TypedExternalConnector[*v1alpha1.Machine] {
			return &connector{
				kube: env.Kube,
				connect: func(ctx context.Context, mg resource.ModernManaged) (connection, error) {
					c, err := connect(ctx, mg)
					if err != nil {
						return connection{}, err
					}
					return connection{api: &api{devices: c.Client.Devices(), keys: c.Client.Keys(), tailnet: c.Client.Tailnet()}, clusterID: c.ClusterID, controlURL: c.ControlURL, tags: c.Tags}, nil
				},
				record: env.Record,
				clock:  o.Now,
			}
		},
		Records:   []string{annotationTailnet},
		Joined:    joinedTailnet,
		Remaining: func(mg *v1alpha1.Machine) string { return meta.NodeIDOf(mg) },
		Poll:      poll,
		Prepare:   func(mgr ctrl.Manager) error { return setupOrphans(mgr, o, ours) },
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return b.Watches(&corev1.Secret{}, secretEvents(env.Kube), builder.OnlyMetadata, builder.WithPredicates(ours))
		},
	}
}

// setupOrphans adds the controller that releases the Secrets of deleted Machines.
func setupOrphans(mgr ctrl.Manager, o setup.Options, ours predicate.Predicate) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("machine-secrets").
		WithOptions(o.ForControllerRuntime()).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(ours, predicate.NewPredicateFuncs(isHeld))).
		// Agents write the status of Machines all the time.
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(stateSecretOf), builder.WithPredicates(setup.Deleted(func(client.Object) bool { return true }))).
		Complete(o.Limit("machine-secrets", &secretReconciler{kube: mgr.GetClient()}))
	return errors.Wrap(err, "cannot set up the controller of machines' Secrets")
}

// isHeld reports whether a Secret is only there for the finalizer. Others are not read, because
// anyone may write the labels of Secrets.
func isHeld(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(o, secrets.FinalizerState)
}

// poll returns when a Machine is observed again.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return interval
	}
	return min(interval, pollUnsettled)
}

// secretEvents returns a handler that finds the machine that a Secret belongs to. A machine that joins the
// tailnet is seen at once.
func secretEvents(kube client.Reader) handler.EventHandler {
	all := handler.EnqueueRequestsFromMapFunc(forSecret)
	return handler.WithLowPriorityWhenUnchanged(handler.Funcs{
		CreateFunc: all.Create,
		DeleteFunc: all.Delete,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			former, current := forSecret(ctx, e.ObjectOld), forSecret(ctx, e.ObjectNew)
			if !slices.Equal(former, current) {
				// The label has changed.
				for _, r := range slices.Concat(former, current) {
					q.Add(r)
				}
				return
			}
			for _, r := range current {
				if e.ObjectNew.GetDeletionTimestamp() == nil && settled(ctx, kube, r.NamespacedName) {
					q.AddAfter(r, settledPause)
					continue
				}
				q.Add(r)
			}
		},
	})
}

// settled reports whether a machine is Ready and stays.
func settled(ctx context.Context, kube client.Reader, n types.NamespacedName) bool {
	m := &v1alpha1.Machine{}
	err := kube.Get(ctx, n, m)
	return err == nil && m.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue && !deleting(m)
}

// forSecret finds the machine that a Secret belongs to.
func forSecret(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[meta.LabelMachine]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

func stateSecretOf(_ context.Context, m client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(m)}}
}

// A secretReconciler releases state Secrets that are being deleted and whose Machine is gone, also
// if the Machine was orphaned by its policy or deleted by force.
type secretReconciler struct{ kube client.Client }

// Reconcile releases a Secret whose Machine is gone.
func (r *secretReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &corev1.Secret{}
	if err := r.kube.Get(ctx, req.NamespacedName, s); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot get Secret")
	}
	owner := metav1.GetControllerOf(s)
	if s.GetDeletionTimestamp() == nil || owner == nil || owner.Kind != v1alpha1.MachineKind {
		return reconcile.Result{}, nil
	}
	m := &v1alpha1.Machine{}
	err := r.kube.Get(ctx, types.NamespacedName{Namespace: s.GetNamespace(), Name: owner.Name}, m)
	if err == nil && m.GetUID() == owner.UID {
		return reconcile.Result{}, nil
	}
	if err != nil && !kerrors.IsNotFound(err) {
		return reconcile.Result{}, errors.Wrap(err, "cannot get Machine")
	}
	return reconcile.Result{}, secrets.ReleaseState(ctx, r.kube, s)
}
