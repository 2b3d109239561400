// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
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

	// seeks reports that it looks for devices.
	seeks bool

	only *types.NamespacedName
}

// Options of a Writer.
type Options struct {
	// Only is the Gateway whose extension this is. Nil stands for the one that is installed
	// for all: policies may be of several Gateways, so where there is that one it tells of
	// all. The other tells of those that are attached to its Gateway, and which nobody
	// else tells of.
	Only *types.NamespacedName

	// Seeks says that it looks for the devices that policies name.
	Seeks bool

	Log logging.Logger
}

// NewWriter returns one that writes nothing until it runs. Objects has policies, from a
// cache.
func NewWriter(s *index.Store, objects client.Reader, kube client.Client, o Options) *Writer {
	return &Writer{store: s, objects: objects, kube: kube, only: o.Only, seeks: o.Seeks, log: o.Log}
}

// controller is what stands beside what this extension says of ancestors. That of the
// installed one sorts first.
func (w *Writer) controller() gwapiv1.GatewayController {
	if w.only == nil {
		return ControllerName
	}
	return ControllerName + "-" + gwapiv1.GatewayController(names.Child(w.only.Name))
}

// ours reports whether an extension of ours said something of an ancestor.
func ours(a gwapiv1.PolicyAncestorStatus) bool {
	return a.ControllerName == ControllerName || strings.HasPrefix(string(a.ControllerName), string(ControllerName)+"-")
}

// tells reports whether this extension is the one that tells of a policy: it is attached to
// its Gateway, and no extension that comes first has told of it. So all agree on one,
// whoever begins.
func (w *Writer) tells(p *ir.RoutePolicy, was gatewayv1alpha1.TailscaleRoutePolicyStatus) bool {
	if w.only == nil {
		return true
	}
	return slices.Contains(p.Served, *w.only) && !slices.ContainsFunc(was.Ancestors, func(a gwapiv1.PolicyAncestorStatus) bool {
		return ours(a) && a.ControllerName < w.controller()
	})
}

// withdraw what this extension said, and what was said of the policy as a whole, unless
// another one of ours says that.
func (w *Writer) withdraw(was gatewayv1alpha1.TailscaleRoutePolicyStatus) gatewayv1alpha1.TailscaleRoutePolicyStatus {
	out := was
	out.Ancestors = slices.DeleteFunc(slices.Clone(was.Ancestors), func(a gwapiv1.PolicyAncestorStatus) bool { return a.ControllerName == w.controller() })
	if len(out.Ancestors) < len(was.Ancestors) && !slices.ContainsFunc(out.Ancestors, ours) {
		out.Rules, out.PolicyConflicts = nil, nil
	}
	return out
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
func (w *Writer) write(ctx context.Context, s *ir.Snapshot) time.Duration {
	wait := time.Duration(0)
	if w.seeks {
		if err := w.seek(ctx, s); err != nil && ctx.Err() == nil {
			w.log.Info("Cannot look for devices of TailscaleRoutePolicies, and will try again", "error", err)
			wait = retry
		}
	}
	all := states(s)
	for p := range s.RoutePolicies() {
		n, st := p.Name, all[p.Name]
		if !w.seeks {
			st.unsought()
		}
		st.controller = w.controller()
		if w.only != nil {
			st.confine(*w.only)
		}
		err := w.settle(ctx, p, st)
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

func (w *Writer) settle(ctx context.Context, p *ir.RoutePolicy, st *state) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := w.objects.Get(ctx, p.Name, o); err != nil {
		// One that is gone needs none.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get")
	}
	status := w.withdraw(o.Status)
	if w.tells(p, o.Status) {
		status = st.status(o.Status)
	}
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
