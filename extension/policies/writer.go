// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"slices"
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
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// debounce is how long a change waits for further changes.
	debounce = 300 * time.Millisecond

	// retry is the delay after a failed write.
	retry = 5 * time.Second

	// timeout limits a request.
	timeout = 10 * time.Second
)

// A Writer writes the status of policies and the Discoveries of their devices. Create one with
// NewWriter.
type Writer struct {
	store   *index.Store
	objects client.Reader
	kube    client.Client
	log     logging.Logger

	// discover reports whether the Writer writes Discoveries.
	discover bool

	gateway *types.NamespacedName
}

// Options of a Writer.
type Options struct {
	// Gateway is the Gateway of a dedicated extension. Nil means the installed extension. A policy
	// may be attached to several Gateways, so the installed extension writes the status of all
	// policies. A dedicated extension writes the status of policies that are attached to its
	// Gateway if no other extension does.
	Gateway *types.NamespacedName

	// Discover enables the Discoveries of the devices in policies.
	Discover bool

	Log logging.Logger
}

// NewWriter returns a Writer, which writes nothing until Run. The reader gets policies from a
// cache.
func NewWriter(s *index.Store, objects client.Reader, kube client.Client, o Options) *Writer {
	return &Writer{store: s, objects: objects, kube: kube, gateway: o.Gateway, discover: o.Discover, log: o.Log}
}

// controllerOf returns the controller name of the extension of a Gateway, or of the installed one, in an
// ancestor's status. The name of the installed extension sorts first.
func controllerOf(gateway *types.NamespacedName) gwapiv1.GatewayController {
	if gateway == nil {
		return ControllerName
	}
	return ControllerName + "-" + gwapiv1.GatewayController(names.Child(gateway.Name))
}

func (w *Writer) controller() gwapiv1.GatewayController { return controllerOf(w.gateway) }

// isOurs reports whether one of our extensions wrote the status of an ancestor.
func isOurs(a gwapiv1.PolicyAncestorStatus) bool { return parse.IsExtension(a.ControllerName) }

// isResponsible reports whether this extension writes the status of a policy: the policy is
// attached to its Gateway, and no extension whose name sorts first has written it. So all
// extensions agree on one, independent of their order.
func (w *Writer) isResponsible(p *ir.RoutePolicy, previous gatewayv1alpha1.TailscaleRoutePolicyStatus) bool {
	if w.gateway == nil {
		return true
	}
	return slices.Contains(p.Served, *w.gateway) && !slices.ContainsFunc(previous.Ancestors, func(a gwapiv1.PolicyAncestorStatus) bool {
		return isOurs(a) && a.ControllerName < w.controller()
	})
}

// withdraw removes the ancestors of this extension from a status. It also removes the rules and
// conflicts, unless another one of our extensions has written them.
func (w *Writer) withdraw(previous gatewayv1alpha1.TailscaleRoutePolicyStatus) gatewayv1alpha1.TailscaleRoutePolicyStatus {
	out := previous
	out.Ancestors = slices.DeleteFunc(slices.Clone(previous.Ancestors), func(a gwapiv1.PolicyAncestorStatus) bool { return a.ControllerName == w.controller() })
	if len(out.Ancestors) < len(previous.Ancestors) && !slices.ContainsFunc(out.Ancestors, isOurs) {
		out.Rules, out.PolicyConflicts = nil, nil
	}
	return out
}

// Run writes until ctx ends. The store must be complete, and no other replica may write.
func (w *Writer) Run(ctx context.Context) {
	changed, end := w.store.Revised()
	defer end()
	due := time.NewTimer(0)
	defer due.Stop()
	// writtenRevision is the last completely written revision of the policies.
	writtenRevision, first := uint64(0), true
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
		if !first && s.PolicyRevision == writtenRevision {
			continue
		}
		if wait := w.write(ctx, s); wait > 0 {
			due.Reset(wait)
			continue
		}
		writtenRevision, first = s.PolicyRevision, false
	}
}

// write writes all changes, and returns the delay until the next attempt. Zero means that no
// further attempt is necessary.
func (w *Writer) write(ctx context.Context, s *ir.Snapshot) time.Duration {
	wait := time.Duration(0)
	if w.discover {
		if err := w.writeDiscoveries(ctx, s); err != nil && ctx.Err() == nil {
			w.log.Info("Cannot write Discoveries of TailscaleRoutePolicies; retrying", "error", err)
			wait = retry
		}
	}
	all := states(s)
	for p := range s.Policies().All() {
		n, st := p.Name, all[p.Name]
		if !w.discover {
			st.reportWithoutDiscovery()
		}
		st.controller = w.controller()
		if w.gateway != nil {
			st.restrictTo(*w.gateway)
		}
		err := w.writeStatus(ctx, p, st)
		switch {
		case err == nil || ctx.Err() != nil:
		case kerrors.IsConflict(err):
			// The cache does not have the last write yet.
			wait = max(wait, debounce)
		default:
			w.log.Info("Cannot write the status of a TailscaleRoutePolicy; retrying", "policy", n, "error", err)
			wait = retry
		}
	}
	return wait
}

// writeStatus writes the status of a policy if it has changed.
func (w *Writer) writeStatus(ctx context.Context, p *ir.RoutePolicy, st *state) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := w.objects.Get(ctx, p.Name, o); err != nil {
		// A deleted policy needs no status.
		return errors.Wrap(client.IgnoreNotFound(err), "cannot get")
	}
	status := w.withdraw(o.Status)
	if w.isResponsible(p, o.Status) {
		status = st.status(o.Status)
	}
	if equality.Semantic.DeepEqual(status, o.Status) {
		return nil
	}
	// The resource version makes the write fail if another client has changed the policy.
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
