// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"slices"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// reasonOrphaned is the reason of the event of an object that is deleted without clean-up.
const reasonOrphaned event.Reason = "NeverAllowed"

// permitted wraps a connector. An object that is being deleted and was never allowed to act on the
// tailnet, or on what its spec names, leaves the tailnet unchanged.
type permitted[T resource.ModernManaged] struct {
	managed.TypedExternalConnector[T]

	permits   *permits.Store
	record    event.Recorder
	remaining func(mg T) string

	// abandoned has the UIDs of objects whose clean-up exceeds the grant.
	abandoned sync.Map
}

// Connect returns a client that removes the permit of an object that is gone.
func (c *permitted[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	var neverAllowed *clients.NeverAllowedError
	if errors.As(err, &neverAllowed) {
		c.recordOrphaned(mg, neverAllowed.Message)
		return nothingExternal[T]{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &permittedClient[T]{TypedExternalClient: e, permitted: c}, nil
}

// recordOrphaned records an event that names what an object leaves in the tailnet.
func (c *permitted[T]) recordOrphaned(mg T, reason string) {
	if remaining := c.remaining(mg); remaining != "" {
		c.record.Event(mg, event.Warning(reasonOrphaned, errors.Errorf("%s: left in the tailnet, if it is there: %s", reason, remaining)))
	}
}

type permittedClient[T resource.ModernManaged] struct {
	managed.TypedExternalClient[T]

	permitted *permitted[T]
}

// Observe observes the object. An object that is being deleted and has nothing left needs no
// permit.
func (c *permittedClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	o, err := c.TypedExternalClient.Observe(ctx, mg)
	if xpmeta.WasDeleted(mg) {
		if _, abandoned := c.permitted.abandoned.Load(mg.GetUID()); abandoned {
			o, err = managed.ExternalObservation{}, nil
		}
	}
	if err != nil || o.ResourceExists || !xpmeta.WasDeleted(mg) {
		return o, err
	}
	if err := c.permitted.permits.Forget(ctx, mg.GetUID()); err != nil {
		return o, errors.Wrap(err, "cannot forget that the object was allowed")
	}
	c.permitted.abandoned.Delete(mg.GetUID())
	return o, nil
}

// Delete deletes what the object made. If the grant of its namespace does not cover the deletion,
// the object is deleted without clean-up.
func (c *permittedClient[T]) Delete(ctx context.Context, mg T) (managed.ExternalDelete, error) {
	o, err := c.TypedExternalClient.Delete(ctx, mg)
	var beyond *allow.ViolationError
	if !errors.As(err, &beyond) {
		return o, err
	}
	if _, loaded := c.permitted.abandoned.LoadOrStore(mg.GetUID(), true); !loaded {
		c.permitted.recordOrphaned(mg, beyond.Error())
	}
	return managed.ExternalDelete{}, nil
}

// prune removes the permits of a kind's objects that were deleted without an observation, for
// example because somebody removed their finalizer.
func prune(mgr ctrl.Manager, o setup.Options, kind string, list func() resource.ManagedList) error {
	covers := func(namespace string) bool {
		return len(o.WatchNamespaces) == 0 || slices.Contains(o.WatchNamespaces, namespace)
	}
	uids := func(ctx context.Context) ([]types.UID, error) {
		l := list()
		if err := mgr.GetClient().List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			return nil, errors.Wrap(err, "cannot list objects")
		}
		var out []types.UID
		err := apimeta.EachListItem(l, func(item runtime.Object) error {
			a, err := apimeta.Accessor(item)
			if err != nil {
				return errors.Wrap(err, "cannot read metadata")
			}
			out = append(out, a.GetUID())
			return nil
		})
		return out, err
	}
	return errors.Wrap(mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
			if err := o.Permits.Prune(ctx, kind, covers, uids); err != nil {
				o.Logger.Info("Cannot forget permits of objects that are gone", "kind", kind, "error", err)
			}
		}, permits.PruneInterval, 1, true)
		return nil
	})), "cannot add the pruning of permits")
}
