// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

const name = "machineset"

// indexOwner finds Machines by the name of the MachineSet that owns them.
const indexOwner = "machineset"

// Needs returns the kinds that must be installed before the controller starts.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		v1alpha1.MachineSetGroupVersionKind,
		v1alpha1.MachineGroupVersionKind,
		v1alpha1.ClusterProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigGroupVersionKind,
		v1alpha1.ProviderConfigUsageGroupVersionKind,
	}
}

// Setup adds the controller of MachineSets to a manager.
func Setup(mgr ctrl.Manager, o setup.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Machine{}, indexOwner, owner); err != nil {
		return errors.Wrap(err, "cannot index Machines by MachineSet")
	}
	w := &watcher{namespaces: o.WatchNamespaces, mgr: mgr}
	r := &reconciler{
		kube:        mgr.GetClient(),
		live:        mgr.GetAPIReader(),
		watch:       w.watch,
		watchStatic: w.watchStatic,
		grant:       clients.NewConnector(mgr.GetClient(), o.Pool, o.Permits, o.AllowedHosts).Grant,
		images:      o.Images,
		log:         o.Logger.WithValues("controller", name),
		record:      o.Recorder(mgr, v1alpha1.MachineSetKind),
		clock:       o.Now,
		pending:     map[types.NamespacedName]pending{},
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		// Changes of the set's own status do not matter.
		For(&v1alpha1.MachineSet{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Owns(&v1alpha1.Machine{}).
		Build(o.Limit(name, r))
	w.controller = c
	return errors.Wrap(err, "cannot set up the controller of MachineSets")
}

func owner(o client.Object) []string {
	c := metav1.GetControllerOf(o)
	if c == nil || c.Kind != v1alpha1.MachineSetKind {
		return nil
	}
	return []string{c.Name}
}
