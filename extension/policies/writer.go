// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

const (
	// debounce is how long a change waits for others.
	debounce = 300 * time.Millisecond

	// retry after a write that failed.
	retry = 5 * time.Second

	// timeout of a request.
	timeout = 10 * time.Second
)

// A Writer keeps the status of policies up to date while it runs, and what looks for the
// devices that they name.
type Writer struct {
	store   *index.Store
	objects client.Reader
	kube    client.Client
	log     logging.Logger

	// seeks tells that it looks for devices.
	seeks bool
}

// NewWriter returns one that writes nothing until it runs. Objects has policies, from a
// cache. It looks for devices only if it seeks.
func NewWriter(s *index.Store, objects client.Reader, kube client.Client, seeks bool, log logging.Logger) *Writer {
	return &Writer{store: s, objects: objects, kube: kube, seeks: seeks, log: log}
}

// Run until ctx ends. The store must be complete, and no other replica may write.
func (w *Writer) Run(ctx context.Context) {
	changed, end := w.store.Revised()
	defer end()
	due := time.NewTimer(0)
	defer due.Stop()
	// said is the revision of policies that all of which is written.
	said, first := uint64(0), true
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			due.Reset(debounce)
			continue
		case <-due.C:
		}
		s := w.store.Snapshot()
		if !first && s.PolicyRevision == said {
			continue
		}
		if wait := w.write(ctx, s); wait > 0 {
			due.Reset(wait)
			continue
		}
		said, first = s.PolicyRevision, false
	}
}

// write what is not said yet, and return how long to wait for the rest. Zero means that
// all is said.
func (w *Writer) write(ctx context.Context, s *index.Snapshot) time.Duration {
	wait := time.Duration(0)
	if w.seeks {
		if err := w.seek(ctx, s); err != nil && ctx.Err() == nil {
			w.log.Info("Cannot look for devices of TailscaleRoutePolicies, and will try again", "error", err)
			wait = retry
		}
	}
	for n, st := range states(s) {
		if !w.seeks {
			st.unsought()
		}
		err := w.settle(ctx, n, st)
		switch {
		case err == nil || ctx.Err() != nil:
		case kerrors.IsConflict(err):
			// What was written last has not come back yet.
			wait = max(wait, debounce)
		default:
			w.log.Info("Cannot tell what becomes of a TailscaleRoutePolicy, and will try again", "policy", n, "error", err)
			wait = retry
		}
	}
	return wait
}

func (w *Writer) settle(ctx context.Context, n types.NamespacedName, st *state) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := w.objects.Get(ctx, n, o); err != nil {
		// One that is gone needs none.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get")
	}
	status := st.status(o.Status)
	if equality.Semantic.DeepEqual(status, o.Status) {
		return nil
	}
	// What somebody else wrote meanwhile must be seen first.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()},
		"status": map[string]any{
			"ancestors": status.Ancestors, "rules": status.Rules, "policyConflicts": status.PolicyConflicts,
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot marshal status")
	}
	return errors.Wrap(client.IgnoreNotFound(w.kube.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))), "cannot patch status")
}
