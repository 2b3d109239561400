// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

const (
	// minBackoff and maxBackoff limit the time between two writes of the same ancestors, which
	// another controller has removed.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// informers are a cache.Cache.
type informers interface {
	client.Reader
	GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// A TLSWriter writes, in the status of BackendTLSPolicies, why the extension does not apply them.
//
// Envoy Gateway replaces the whole status, including the ancestors of other controllers, when what it
// computes for a policy changes, and when it starts (BackendTLSPolicy in
// internal/provider/kubernetes/status.go; it discards the status that it reads in
// processBackendTLSPolicies of controller.go). It does not write because of the TLSWriter: it ignores
// changes of a status (TypedGenerationChangedPredicate in controller.go), and subscribers of its results
// see changes only (coalesce in github.com/telepresenceio/watchable). So the TLSWriter restores its
// ancestors after each change of a policy, and backs off in case that another controller removes them
// each time.
type TLSWriter struct {
	store     *index.Store
	informers informers
	kube      client.Client
	log       logging.Logger

	controller gwapiv1.GatewayController
	serves     func(gateway types.NamespacedName) bool

	// written are the last writes of policies. Only Run uses them.
	written map[types.NamespacedName]writtenTLS
}

// A writtenTLS is the last write of a policy, and the time until the same ancestors are written again.
type writtenTLS struct {
	ancestors string
	at        time.Time
	backoff   time.Duration
}

// NewTLSWriter returns a TLSWriter, which writes nothing until Run. The cache has the policies as
// parse.Strip leaves them.
func NewTLSWriter(s *index.Store, cache informers, kube client.Client, o Options) *TLSWriter {
	return &TLSWriter{
		store: s, informers: cache, kube: kube, log: o.Log, controller: controllerOf(o.Gateway),
		serves: s.Serves, written: map[types.NamespacedName]writtenTLS{},
	}
}

// Run writes until ctx ends. The store must be complete, and no other replica may write.
func (w *TLSWriter) Run(ctx context.Context) {
	revised, end := w.store.Revised()
	defer end()
	wake := make(chan struct{}, 1)
	var watched func()
	defer func() {
		if watched != nil {
			watched()
		}
	}()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-revised:
			due.Reset(debounce)
			continue
		case <-wake:
			due.Reset(debounce)
			continue
		case <-due.C:
		}
		if watched == nil {
			watched = w.watch(ctx, wake)
		}
		if wait := w.write(ctx, w.store.Snapshot(), time.Now()); wait > 0 {
			due.Reset(wait)
		}
	}
}

// watch notifies a channel of changed policies, and returns a function that ends it. Nil if the kind
// does not exist yet: then no policy exists, either.
func (w *TLSWriter) watch(ctx context.Context, wake chan<- struct{}) func() {
	i, err := w.informers.GetInformer(ctx, &gwapiv1.BackendTLSPolicy{}, cache.BlockUntilSynced(false))
	if err != nil {
		w.log.Debug("Cannot watch BackendTLSPolicies", "error", err)
		return nil
	}
	r, err := i.AddEventHandler(watch.Handler(func(_, _ client.Object) {
		select {
		case wake <- struct{}{}:
		default:
		}
	}))
	if err != nil {
		w.log.Info("Cannot watch BackendTLSPolicies", "error", err)
		return nil
	}
	return func() { _ = i.RemoveEventHandler(r) } // It fails only if the informer has stopped.
}

// write writes all changes, and returns the delay until the next attempt. Zero means that no further
// attempt is necessary.
func (w *TLSWriter) write(ctx context.Context, s *ir.Snapshot, at time.Time) time.Duration {
	desired := tlsAncestors(s, w.serves)
	all := &gwapiv1.BackendTLSPolicyList{}
	if err := w.informers.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		if !kmeta.IsNoMatchError(err) && ctx.Err() == nil {
			w.log.Info("Cannot list BackendTLSPolicies; retrying", "error", err)
			return retry
		}
		return 0
	}
	wait := time.Duration(0)
	retryAfter := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	exists := map[types.NamespacedName]bool{}
	for i := range all.Items {
		p := &all.Items[i]
		n := client.ObjectKeyFromObject(p)
		exists[n] = true
		if equality.Semantic.DeepEqual(withTLSAncestors(p.Status.Ancestors, w.controller, desired[n]), p.Status.Ancestors) {
			continue
		}
		d, err := w.writeStatus(ctx, n, desired[n], at)
		switch {
		case ctx.Err() != nil:
			return 0
		case kerrors.IsConflict(err):
			retryAfter(debounce)
		case err != nil:
			w.log.Info("Cannot write the status of a BackendTLSPolicy; retrying", "policy", n, "error", err)
			retryAfter(retry)
		case d > 0:
			retryAfter(d)
		}
	}
	for n := range w.written {
		if !exists[n] {
			delete(w.written, n)
		}
	}
	return wait
}

// writeStatus writes the ancestors of a policy, unless the same were written a short time ago. It
// returns the time until then.
func (w *TLSWriter) writeStatus(ctx context.Context, n types.NamespacedName, ours []tlsAncestor, at time.Time) (time.Duration, error) {
	content := fmt.Sprint(ours)
	last, repeated := w.written[n]
	repeated = repeated && last.ancestors == content
	if d := last.at.Add(last.backoff).Sub(at); repeated && d > 0 {
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p := &gwapiv1.BackendTLSPolicy{}
	if err := w.kube.Get(ctx, n, p); err != nil {
		// A deleted policy needs no status.
		return 0, errors.Wrap(client.IgnoreNotFound(err), "cannot get")
	}
	ancestors := withTLSAncestors(p.Status.Ancestors, w.controller, ours)
	if equality.Semantic.DeepEqual(ancestors, p.Status.Ancestors) {
		// The cache does not have the last write yet.
		return 0, nil
	}
	// The list is atomic for server-side apply. The resource version makes the write fail if another
	// client has changed the policy, so that no ancestor of others is lost.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": p.GetResourceVersion()},
		"status":   map[string]any{"ancestors": ancestors},
	})
	if err != nil {
		return 0, errors.Wrap(err, "cannot marshal status")
	}
	if err := client.IgnoreNotFound(w.kube.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, patch))); err != nil {
		return 0, errors.Wrap(err, "cannot patch status")
	}
	backoff := minBackoff
	if repeated && at.Sub(last.at) < 2*maxBackoff {
		backoff = min(2*last.backoff, maxBackoff)
	}
	w.written[n] = writtenTLS{ancestors: content, at: at, backoff: backoff}
	return 0, nil
}
