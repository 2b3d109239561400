// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package resync makes Envoy Gateway translate a Gateway again when the inputs of its clusters
// change. Envoy Gateway translates only when objects that it watches change, and of our kinds
// it loads only the objects that HTTPRoutes reference. Therefore each Gateway has a
// TailscaleRevision with a digest of the objects that its routes depend on. Endpoints need no
// revision: package eds delivers them.
//
// A hook answers from the objects that its replica has, and never waits for the requested
// revision. If the replica answered from another revision, it resyncs the Gateway once it has
// caught up. A replica also resyncs all Gateways when it starts, because the answers of earlier
// processes are unknown, and when it stops, because the replica that answers next may run
// another version.
package resync

import (
	"context"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// A Controller reconciles the TailscaleRevisions.
type Controller struct {
	reconciler *reconcile.Reconciler
	store      *index.Store
	log        logging.Logger

	// mu guards stale.
	mu sync.Mutex

	// stale holds the requested revision of each Gateway that a hook of this replica answered
	// from other objects.
	stale map[types.NamespacedName]string
}

// New returns a Controller that writes with the client. Start it with Run.
func New(c client.Client, s *index.Store, log logging.Logger) *Controller {
	r := reconcile.NewReconciler(v1alpha1.TailscaleRevisionKind, &writer{client: c}, log)
	r.Exclude(func(n types.NamespacedName, _ string) bool { return !s.Serves(n) })
	return &Controller{
		reconciler: r,
		store:      s,
		log:        log,
		stale:      map[types.NamespacedName]string{},
	}
}

// Run reconciles the TailscaleRevisions until ctx ends. The store must be complete. Call
// HandOver after the last hook has been answered.
func (c *Controller) Run(ctx context.Context, informers watch.Informers) error {
	if err := c.reconciler.Watch(ctx, informers, &v1alpha1.TailscaleRevision{}, state); err != nil || ctx.Err() != nil {
		return err
	}
	changed, end := c.store.Revised()
	defer end()
	c.update()
	c.ResyncAll()
	return c.reconciler.Follow(ctx, changed, c.update)
}

// update sets the desired revisions from the snapshot, and resyncs the Gateways whose requested
// revision the replica has now.
func (c *Controller) update() {
	s := c.store.Snapshot()
	c.reconciler.SetDesired(maps.Collect(s.GatewayDigests()))
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, requested := range c.stale {
		if s.GatewayDigest(n) == requested {
			c.reconciler.Resync(n)
			delete(c.stale, n)
		}
	}
}

// RecordAnswer records that a hook of this replica answered a request of one revision of a
// Gateway from another one. It reports whether the replica lacked the requested objects.
// RecordAnswer does not treat a request of an earlier revision as a lag.
func (c *Controller) RecordAnswer(gateway types.NamespacedName, requested, returned string) bool {
	if !c.differs(gateway, requested, returned) {
		return false
	}
	lagged := !c.reconciler.Desired(gateway, requested)
	if lagged {
		c.log.Info("Answered a hook from older objects than Envoy Gateway requested; will resync the Gateway", "gateway", gateway, "requested", requested, "returned", returned)
	}
	// The objects may have arrived meanwhile.
	if c.store.Snapshot().GatewayDigest(gateway) == requested {
		c.update()
	}
	return lagged
}

// differs records an answer that differs from the requested revision, and reports whether the
// difference is new.
func (c *Controller) differs(gateway types.NamespacedName, requested, returned string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if requested == returned {
		delete(c.stale, gateway)
		return false
	}
	if c.stale[gateway] == requested {
		return false
	}
	c.stale[gateway] = requested
	return true
}

// ResyncAll makes Envoy Gateway translate all Gateways again, although nothing has changed.
func (c *Controller) ResyncAll() {
	for _, n := range c.reconciler.UpToDate() {
		c.reconciler.Resync(n)
	}
}

// HandOver makes Envoy Gateway call the hooks of another replica, after this one has stopped
// serving.
func (c *Controller) HandOver(ctx context.Context) error {
	return c.reconciler.RewriteAll(ctx)
}

// state returns the revision of a TailscaleRevision. It is empty if the object does not target
// the Gateway of its name: the extension does not manage such objects.
func state(o client.Object) string {
	r, ok := o.(*v1alpha1.TailscaleRevision)
	if !ok || len(r.Spec.TargetRefs) != 1 || string(r.Spec.TargetRefs[0].Name) != r.Name {
		return ""
	}
	return r.Spec.Revision
}

type writer struct{ client client.Client }

// Write implements reconcile.Writer.
func (w *writer) Write(ctx context.Context, n types.NamespacedName, revision string, observed *reconcile.Observed) (*reconcile.Observed, error) {
	u := build(n, revision, observed)
	if err := reconcile.Apply(ctx, w.client, u, observed); err != nil {
		return nil, errors.Wrapf(err, "cannot write TailscaleRevision %s", n)
	}
	current := &v1alpha1.TailscaleRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: n.Namespace, Name: n.Name, ResourceVersion: u.GetResourceVersion(), UID: u.GetUID(),
	}}
	current.Spec.Attempt, _, _ = unstructured.NestedInt64(u.Object, "spec", "attempt")
	return &reconcile.Observed{State: revision, Object: current}, nil
}

// Delete implements reconcile.Writer.
func (w *writer) Delete(ctx context.Context, n types.NamespacedName, observed *reconcile.Observed) error {
	return errors.Wrapf(reconcile.Delete(ctx, w.client, observed), "cannot delete TailscaleRevision %s", n)
}

// build returns a TailscaleRevision that differs from the observed one.
func build(n types.NamespacedName, revision string, observed *reconcile.Observed) *unstructured.Unstructured {
	spec := map[string]any{
		"targetRefs": []any{map[string]any{"group": gwapiv1.GroupName, "kind": "Gateway", "name": n.Name}},
		"revision":   revision,
	}
	if observed != nil && observed.State == revision {
		if previous, ok := observed.Object.(*v1alpha1.TailscaleRevision); ok {
			spec["attempt"] = previous.Spec.Attempt + 1
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.TailscaleRevisionKind))
	u.SetNamespace(n.Namespace)
	u.SetName(n.Name)
	u.SetLabels(map[string]string{ir.ManagedByLabel: ir.ManagedBy})
	return u
}
