// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger has Envoy Gateway translate a Gateway again when what its clusters are
// made of has changed. Envoy Gateway asks for that only when objects that it knows
// itself change, and of ours it knows but those that HTTPRoutes name. So there is a
// TailscaleRevision for each Gateway, which says what its routes rest on. Endpoints need
// none of this: they come by package eds.
//
// A hook answers from what its replica knows, and never waits for the revision that it
// is asked for. If that was another one, the replica asks again once it has caught up.
// So does one that starts, for nobody knows what the one before it answered, and one
// that ends, for another one answers then, which may be of another version.
package trigger

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
	"github.com/tailscale-gateway/tailscale-gateway/extension/keep"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// A Trigger keeps the TailscaleRevisions.
type Trigger struct {
	keeper *keep.Keeper
	store  *index.Store
	log    logging.Logger

	// mu guards stale.
	mu sync.Mutex

	// stale are the revisions that a hook of this replica was asked for when it
	// answered from other objects, by Gateway.
	stale map[types.NamespacedName]string
}

// New returns a Trigger that writes by the client once it runs.
func New(c client.Client, s *index.Store, log logging.Logger) *Trigger {
	k := keep.NewKeeper(v1alpha1.TailscaleRevisionKind, &writer{client: c}, log)
	k.Leave(func(n types.NamespacedName, _ string) bool { return !s.Serves(n) })
	return &Trigger{
		keeper: k,
		store:  s,
		log:    log,
		stale:  map[types.NamespacedName]string{},
	}
}

// Run until ctx ends. The store must be complete. Call Farewell after, when nothing is
// answered any more.
func (t *Trigger) Run(ctx context.Context, from watch.Informers) error {
	if err := t.keeper.Watch(ctx, from, &v1alpha1.TailscaleRevision{}, state); err != nil || ctx.Err() != nil {
		return err
	}
	changed, end := t.store.Revised()
	defer end()
	t.want()
	t.Again()
	return t.keeper.Follow(ctx, changed, t.want)
}

// want what the snapshot says.
func (t *Trigger) want() {
	s := t.store.Snapshot()
	t.keeper.Want(maps.Collect(s.GatewayDigests()))
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, asked := range t.stale {
		if s.GatewayDigest(n) == asked {
			t.keeper.Again(n)
			delete(t.stale, n)
		}
	}
}

// Answered notes that a hook of this replica answered about a Gateway, for which a
// revision was asked, from what it knew as another one. It reports whether that was for
// lack of what the revision stands for, and does not wait: Envoy Gateway may as well have
// asked for less than there is.
func (t *Trigger) Answered(gateway types.NamespacedName, asked, given string) bool {
	if !t.differs(gateway, asked, given) {
		return false
	}
	lagged := !t.keeper.Wanted(gateway, asked)
	if lagged {
		t.log.Info("Answered Envoy Gateway from older objects than it asked for; it will be had to ask again", "gateway", gateway, "asked", asked, "given", given)
	}
	// It may have come meanwhile.
	if t.store.Snapshot().GatewayDigest(gateway) == asked {
		t.want()
	}
	return lagged
}

// differs notes an answer that is not what was asked for, and reports whether that is new.
func (t *Trigger) differs(gateway types.NamespacedName, asked, given string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked == given {
		delete(t.stale, gateway)
		return false
	}
	if t.stale[gateway] == asked {
		return false
	}
	t.stale[gateway] = asked
	return true
}

// Again has Envoy Gateway ask about all Gateways, although nothing changed that they rest
// on.
func (t *Trigger) Again() {
	for _, n := range t.keeper.Settled() {
		t.keeper.Again(n)
	}
}

// Farewell has Envoy Gateway ask another replica, once this one answers no more.
func (t *Trigger) Farewell(ctx context.Context) error {
	return t.keeper.Touch(ctx)
}

// state of a TailscaleRevision. One that names another Gateway than its own is none of
// ours.
func state(o client.Object) string {
	r, ok := o.(*v1alpha1.TailscaleRevision)
	if !ok || len(r.Spec.TargetRefs) != 1 || string(r.Spec.TargetRefs[0].Name) != r.Name {
		return ""
	}
	return r.Spec.Revision
}

type writer struct{ client client.Client }

// Write implements keep.Writer.
func (w *writer) Write(ctx context.Context, n types.NamespacedName, want string, seen *keep.Seen) (*keep.Seen, error) {
	u := build(n, want, seen)
	if err := keep.Apply(ctx, w.client, u, seen); err != nil {
		return nil, errors.Wrapf(err, "cannot write TailscaleRevision %s", n)
	}
	now := &v1alpha1.TailscaleRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: n.Namespace, Name: n.Name, ResourceVersion: u.GetResourceVersion(), UID: u.GetUID(),
	}}
	now.Spec.Attempt, _, _ = unstructured.NestedInt64(u.Object, "spec", "attempt")
	return &keep.Seen{State: want, Object: now}, nil
}

// Delete implements keep.Writer.
func (w *writer) Delete(ctx context.Context, n types.NamespacedName, seen *keep.Seen) error {
	return errors.Wrapf(keep.Delete(ctx, w.client, seen), "cannot delete TailscaleRevision %s", n)
}

// build the object. It differs from the one that was seen.
func build(n types.NamespacedName, want string, seen *keep.Seen) *unstructured.Unstructured {
	spec := map[string]any{
		"targetRefs": []any{map[string]any{"group": gwapiv1.GroupName, "kind": "Gateway", "name": n.Name}},
		"revision":   want,
	}
	if seen != nil && seen.State == want {
		if r, ok := seen.Object.(*v1alpha1.TailscaleRevision); ok {
			spec["attempt"] = r.Spec.Attempt + 1
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.TailscaleRevisionKind))
	u.SetNamespace(n.Namespace)
	u.SetName(n.Name)
	u.SetLabels(map[string]string{keep.ManagedByLabel: keep.ManagedBy})
	return u
}
